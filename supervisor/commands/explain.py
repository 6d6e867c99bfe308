"""`explain`: what holds for a server, or for the daemon, and where each value comes from. Needs no daemon."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from actors.errors import ConfigError
from supervisor.commands.common import console, json_option, json_text, plain, print_json, print_table, table
from supervisor.commands.completion import complete_server
from supervisor.commands.outcomes import BadConfiguration, CommandFailed
from supervisor.commands.run import config_option, find_config
from supervisor.config import Configuration, ServerConfig, load
from supervisor.config.entries.remarks import lines
from supervisor.config.provenance import EffectiveValue, explain_daemon, explain_server
from supervisor.config.syntax.keys import nearest_names
from supervisor.config.syntax.origins import Lookups, Origin
from supervisor.host.datadir import default_data_dir


@click.command()
@click.argument("server", required=False, shell_complete=complete_server)
@config_option
@json_option
def explain(server: str | None, config: Path | None, as_json: bool) -> None:
    """Show every setting that holds, and where it comes from.

    The settings are those of SERVER, or without one those of the daemon. Each comes from a line of the file or of an
    `envFile`, from a variable, from another setting, or is the default. What is set stands first. Secrets are hidden.

    It reads the file that `run` would read, with the variables of this shell. A daemon that runs as a service has its
    own.

    \b
    mcpvisor explain github
    """
    environ = dict(os.environ)
    try:
        configuration = load(find_config(config, environ), environ)
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None
    if server is None:
        values = explain_daemon(configuration, _data_dir(environ), environ)
        notes = [note for note in configuration.notes if note.server is None]
    else:
        entry = _find(configuration, server)
        values = explain_server(configuration, entry, environ)
        notes = [note for note in configuration.notes if note.server == entry.name]
    if as_json:
        print_json({"path": str(configuration.path), "server": server, "values": [_row(each) for each in values]})
    else:
        _show(values, configuration.path.name, of_daemon=server is None)
        for line in lines(notes):
            click.echo(f"note: {line}")


def _find(configuration: Configuration, name: str) -> ServerConfig:
    """Raises `CommandFailed` for a server that is not there, or is left out."""
    entries = {entry.path_name: entry for entry in configuration.servers}
    entry = entries.get(name) or next((each for each in configuration.servers if each.name == name), None)
    if entry is not None:
        return entry
    if wrong := [str(problem) for problem in configuration.problems if problem.server == name]:
        raise CommandFailed("\n".join([*wrong, f"{name} is left out until this is mended"]))
    near = nearest_names(name, configuration.server_names)
    hint = f"did you mean {', '.join(near)}?" if near else f"mcpvisor check {configuration.path} lists them"
    raise CommandFailed(f"there is no server {name[:100]!r}; {hint}")


def _data_dir(environ: dict[str, str]) -> EffectiveValue:
    lookups = Lookups(environ)
    try:
        place = str(default_data_dir(lookups))
    except ConfigError:
        place = ""
    origin = Origin(source="derived", place="the environment", variables=lookups.names)
    return EffectiveValue(key="data_dir", value=place, origin=origin)


def _row(each: EffectiveValue) -> dict[str, Any]:
    origin: dict[str, Any] = msgspec.to_builtins(each.origin)
    return {"key": each.key, "value": each.value, **origin}


def _show(values: list[EffectiveValue], file: str, *, of_daemon: bool) -> None:
    rows = table("KEY", "VALUE", "FROM")
    for each in values:
        text = each.value if isinstance(each.value, str) and each.value else json_text(each.value)
        style = "dim" if each.origin.source == "default" else None
        rows.add_row(plain(each.key), plain(text), plain(each.words(file, of_daemon=of_daemon)), style=style)
    print_table(console(), rows)
