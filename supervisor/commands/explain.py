"""`explain`: what holds for a server, or for the daemon, and where each value comes from. Needs no daemon."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec

from actors.command_line import command
from actors.errors import ConfigError, InvalidArguments
from actors.kit.paths import absolute
from supervisor import operations
from supervisor.commands.common import (
    ask,
    console,
    daemon_options,
    json_text,
    perform,
    plain,
    print_json,
    print_table,
    say,
    table,
)
from supervisor.commands.completion import complete_server
from supervisor.commands.config import place_text, value_text
from supervisor.commands.outcomes import EXIT_FAILED, BadConfiguration, CommandFailed
from supervisor.commands.run import config_option, find_config, find_published
from supervisor.config import Configuration, ServerConfig, load
from supervisor.config.expansion import Lookups, Origin
from supervisor.config.keys import nearest_names
from supervisor.config.provenance import EffectiveValue, explain_confirm, explain_daemon, explain_server
from supervisor.config.remarks import lines
from supervisor.host.places import default_data_dir
from supervisor.identity.people import Tier
from supervisor.values.rows import ExplainedServer, explain_values, stored_of


@click.command()
@click.argument("server", required=False, shell_complete=complete_server)
@config_option
@click.option("--user", default="", metavar="NAME", help="What holds for this user, with values of teams and users.")
@click.option("--team", default="", metavar="NAME", help="What holds for this team; with --user, for the user in it.")
@daemon_options
def explain(server: str | None, config: Path | None, *, user: str, team: str, as_json: bool, url: str) -> None:
    """Show every setting that holds, and where it comes from.

    The settings are those of SERVER, or without one those of the daemon. Each comes from a line of the file or of an
    `envFile`, from a variable, from another setting, or is the default. What is set stands first. Secrets are hidden.

    It reads the file that `run` would read, with the variables of this shell. A daemon that runs as a service has its
    own. With --user or --team it also asks the daemon for the values that it was given, and says of each value of teams
    and users whose it is, and where it stands.

    \b
    mcpvisor explain github
    mcpvisor explain github --user ben

    Exit 1 if a value is missing that --user or --team has to have.
    """
    if (user or team) and server is None:
        raise click.UsageError("--user and --team are about a server: name one")
    environ = dict(os.environ)
    try:
        path = find_config(config, environ)
        configuration = load(path, environ, published=find_published(path, environ))
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None
    if server is None:
        values = explain_daemon(configuration, _data_dir(environ), environ)
        notes = [note for note in configuration.notes if note.server is None]
    else:
        entry = _find(configuration, server, url)
        notes = [note for note in configuration.notes if note.server == entry.name]
        if user or team:
            holds = _holds(configuration, entry, user=user, team=team, url=url)
            values = explain_server(configuration, holds.config, environ)
            values = [*explain_confirm(configuration, user=user, team=team), *values]
            _show_for(configuration, values, holds, as_json=as_json)
            return
        values = explain_server(configuration, entry, environ)
    if as_json:
        print_json({"path": str(configuration.path), "server": server, "values": [each.row() for each in values]})
    else:
        _show(values, configuration.path.name, of_daemon=server is None)
        for line in lines(notes):
            click.echo(f"note: {line}")


def _holds(configuration: Configuration, entry: ServerConfig, *, user: str, team: str, url: str) -> ExplainedServer:
    """Return what holds for somebody, also by what the daemon was given if it can be asked. Raises `CommandFailed`."""
    teams = [team] if team else sorted(configuration.settings.identity.teams_of(user))
    asked = [{"user": user, "team": team}] if user else []
    rows: list[dict[str, Any]] = []
    try:
        running = ask(url, lambda daemon: daemon.configuration(), warns=False).path
        if Path(absolute(running)) != Path(absolute(str(configuration.path))):
            raise CommandFailed(f"it runs with another file, {running}")
        for parameters in [*asked, *({"team": each} for each in teams)]:
            rows += perform(url, operations.VALUES, {**parameters, "server": entry.path_name}, warns=False)["values"]
    except CommandFailed as error:
        say(plain(f"note: this is the file alone, without what the daemon was given: {error.message}").plain)
        rows = []
    try:
        return explain_values(configuration, entry, stored_of(rows), user=user, team=team)
    except InvalidArguments as error:
        raise CommandFailed(error.message) from None


def _show_for(
    configuration: Configuration, values: list[EffectiveValue], holds: ExplainedServer, *, as_json: bool
) -> None:
    """Show what holds for somebody. Ends the command with 1 if that cannot run."""
    server, given = holds.config.path_name, msgspec.to_builtins(holds.rows)
    waits = [_way_to_give(server, name, tier) for name, tier in holds.missing.items()]
    if as_json:
        whose = {"path": str(configuration.path), "server": server, "team": holds.team}
        shown = {"values": [each.row() for each in values], "given": given, "missing": holds.missing}
        print_json({**whose, **shown, "faults": holds.faults})
    else:
        _show(values, configuration.path.name, of_daemon=False)
        rows = table("VALUE", "IS", "OF", "FROM")
        for row in given:
            of = f"{row['by']} {row['owner']}" if row["by"] else "nobody" if row["missing"] else "default"
            rows.add_row(plain(row["name"]), plain(value_text(row)), plain(of), plain(_from(configuration, row)))
        click.echo()
        print_table(console(), rows)
    for line in (*waits, *holds.faults):
        say(plain(line).plain)
    if waits or holds.faults:
        raise SystemExit(EXIT_FAILED)


def _from(configuration: Configuration, row: dict[str, Any]) -> str:
    return f"{configuration.path.name}:{row['line']}" if row["kept"] == "file" and row["line"] else place_text(row)


def _way_to_give(server: str, name: str, tier: Tier) -> str:
    if tier == "team":
        return f"{name} is missing: an admin gives it by {command('config', 'set', server, name, '--team', 'NAME')}"
    return f"{name} is missing: its user gives it by {command('config', 'set', server, name)}"


def _find(configuration: Configuration, name: str, url: str) -> ServerConfig:
    """Raises `CommandFailed` for a server that is not there, or is left out. It names the file that was read."""
    entries = {entry.path_name: entry for entry in configuration.servers}
    entry = entries.get(name) or next((each for each in configuration.servers if each.name == name), None)
    if entry is not None:
        return entry
    if wrong := [str(problem) for problem in configuration.problems if problem.server == name]:
        raise CommandFailed("\n".join([*wrong, f"{name} is left out until this is mended"]))
    near = nearest_names(name, configuration.server_names)
    hint = f"did you mean {', '.join(near)}?" if near else f"{command('check', str(configuration.path))} lists them"
    missing = f"there is no server {name[:100]!r} in {absolute(str(configuration.path))}"
    with suppress(CommandFailed):
        running = ask(url, lambda daemon: daemon.configuration(), warns=False).path
        if Path(absolute(running)) != Path(absolute(str(configuration.path))):
            hint = f"the daemon reads another file: {command('explain', name[:100], '--config', running)}"
    raise CommandFailed(plain(f"{missing}; {hint}").plain)


def _data_dir(environ: dict[str, str]) -> EffectiveValue:
    lookups = Lookups(environ)
    try:
        place = str(default_data_dir(lookups))
    except ConfigError:
        place = ""
    origin = Origin(source="derived", place="the environment", variables=lookups.names)
    return EffectiveValue(key="data_dir", value=place, origin=origin)


def _show(values: list[EffectiveValue], file: str, *, of_daemon: bool) -> None:
    rows = table("KEY", "VALUE", "FROM")
    for each in values:
        text = each.value if isinstance(each.value, str) and each.value else json_text(each.value)
        style = "dim" if each.origin.source == "default" else None
        rows.add_row(plain(each.key), plain(text), plain(each.words(file, of_daemon=of_daemon)), style=style)
    print_table(console(), rows)
