"""`add`, `remove` and `edit`: the servers of the configuration, by command. A running daemon follows at once.

- A running daemon changes its own file, and follows. Where none runs it is the file that `mcpvisor run` would take.
  Comments, order and layout stay, and what it held is kept in a copy beside it.
- An entry that would be left out is not written, nor is a file that no daemon would take.
- A daemon that was asked to change its file and does not answer is not helped: it may have done so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from actors.errors import ConfigError
from supervisor import operations
from supervisor.commands.common import DEFAULT_URL, ask, perform, plain
from supervisor.commands.completion import complete_server
from supervisor.commands.outcomes import CommandFailed, NoDaemon
from supervisor.commands.own_file import edit_file, open_editor, own_file
from supervisor.config.edits import add_entry, change_entry, check_value, remove_entry
from supervisor.daemon_client.client import ConfigurationSource
from supervisor.operations import Operation

Values = dict[str, Any]

config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="Configuration file, if not the daemon's."
)
daemon_option = click.option(
    "--daemon",
    envvar="MCPVISOR_URL",
    default=DEFAULT_URL,
    metavar="URL",
    help="Address of the daemon; also MCPVISOR_URL.",
)
url_or_daemon_option = click.option(
    "--url",
    "--daemon",
    "daemon",
    envvar="MCPVISOR_URL",
    default=DEFAULT_URL,
    metavar="URL",
    help="Address of the daemon; also MCPVISOR_URL.",
)
set_option = click.option(
    "--set", "given", multiple=True, metavar="KEY=VALUE", help="Any key of the entry; JSON or text, dots go deeper."
)


@click.command()
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", metavar="URL", help="Address of a remote server, instead of a command.")
@click.option("--env", "-e", multiple=True, metavar="NAME[=VALUE]", help="A variable; NAME alone: the daemon's own.")
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="A header for a remote server; may be repeated.")
@click.option("--cwd", metavar="DIR", help="Working directory of the COMMAND.")
@click.option("--ephemeral", is_flag=True, help="Only until the running daemon ends, not to the file.")
@set_option
@config_option
@daemon_option
def add(*, name: str, ephemeral: bool, config: Path | None, daemon: str, **written: Any) -> None:
    """Add the server NAME to the configuration.

    A local server is a COMMAND with its arguments behind `--`, a remote one has a --url. A running daemon takes it over
    at once.

    \b
    mcpvisor add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    mcpvisor add tickets --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${TICKETS_KEY}'
    """
    entry = entry_of(**written)
    _check(name, entry)
    body = {"name": name, "entry": entry, "ephemeral": ephemeral}
    if _ask_daemon(config, daemon, operations.ADD_SERVER, body):
        return
    if ephemeral:
        raise CommandFailed("no daemon runs that could have it until it ends: leave --ephemeral out, or start one")
    edit_file(config, name, lambda text, path: add_entry(text, name, entry, path))


@click.command()
@click.argument("name", shell_complete=complete_server)
@config_option
@url_or_daemon_option
def remove(*, name: str, config: Path | None, daemon: str) -> None:
    """Remove the server NAME from the configuration.

    A running daemon stops it at once; its calls in flight may end.
    """
    _check(name, {})
    if not _ask_daemon(config, daemon, operations.REMOVE_SERVER, {}, name):
        edit_file(config, name, lambda text, path: remove_entry(text, name, path))


@click.command()
@click.argument("name", required=False, shell_complete=complete_server)
@set_option
@click.option("--unset", multiple=True, metavar="KEY", help="Remove a key from the entry.")
@config_option
@url_or_daemon_option
def edit(*, name: str | None, given: tuple[str, ...], unset: tuple[str, ...], config: Path | None, daemon: str) -> None:
    """Change keys of the server NAME, or edit the whole file.

    Without NAME it opens the file in your editor ($VISUAL, $EDITOR) and checks what you save. A running daemon follows
    at once.

    \b
    mcpvisor edit files --set idle_timeout_s=60 --set env.LOG_LEVEL=debug --unset cwd
    """
    if name is None:
        if given or unset:
            raise click.UsageError("say which server the keys belong to: mcpvisor edit NAME --set KEY=VALUE")
        _open(config, daemon)
        return
    if not given and not unset:
        raise click.UsageError("say what to change: --set KEY=VALUE or --unset KEY; without NAME the editor opens")
    patch = _nest({**_values(given), **{tuple(key.split(".")): None for key in unset}})
    _check(name, patch)
    if not _ask_daemon(config, daemon, operations.CHANGE_SERVER, {"entry": patch}, name):
        edit_file(config, name, lambda text, path: change_entry(text, name, patch, path))


def entry_of(
    command: tuple[str, ...],
    url: str | None,
    env: tuple[str, ...],
    header: tuple[str, ...],
    cwd: str | None,
    given: tuple[str, ...],
) -> Values:
    """Return the entry that the options of `add` mean. Raises `UsageError`."""
    if bool(command) == bool(url):
        raise click.UsageError("name a command behind --, or an address with --url")
    entry: Values = {"command": command[0]} if command else {"url": url}
    if command[1:]:
        entry["args"] = list(command[1:])
    if variables := dict(_variable(each) for each in env):
        entry["env"] = variables
    if headers := dict(_split(each, ":", "--header") for each in header):
        entry["headers"] = {name: value.strip() for name, value in headers.items()}
    if cwd is not None:
        entry["cwd"] = cwd
    return _nest(_values(given), entry)


def _nest(values: Mapping[tuple[str, ...], Any], into: Values | None = None) -> Values:
    """Return values by the keys on the way to them as objects in one another. Raises `UsageError`."""
    into = {} if into is None else into
    for keys, value in values.items():
        below: Any = into
        for key in keys[:-1]:
            below = below.setdefault(key, {})
            if not isinstance(below, dict):
                raise click.UsageError(f"{'.'.join(keys)}: {key} is no object")
        below[keys[-1]] = value
    return into


def _variable(text: str) -> tuple[str, str]:
    return _split(text, "=", "--env") if "=" in text else (text, f"${{{text}}}")


def _values(given: tuple[str, ...]) -> dict[tuple[str, ...], Any]:
    pairs = (_split(each, "=", "--set") for each in given)
    return {(keys := tuple(key.split("."))): _value(keys, text) for key, text in pairs}


def _value(keys: tuple[str, ...], text: str) -> Any:
    """Return what a text says as JSON, or itself: variables and headers have no other values than texts."""
    if len(keys) > 1 and keys[0] in ("env", "headers"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _check(name: str, values: Values) -> None:
    """Raise `UsageError` for what can be written into no file."""
    try:
        check_value({name: values})
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _split(text: str, sign: str, option: str) -> tuple[str, str]:
    name, there, value = text.partition(sign)
    if not there or not name.strip():
        raise click.UsageError(f"{option} takes {'KEY' if option == '--set' else 'NAME'}{sign}VALUE")
    return name.strip(), value


def _ask_daemon(config: Path | None, url: str, operation: Operation, body: Values, server: str = "") -> bool:
    """Have a running daemon change its file; False if none runs, or with another file than `config`."""
    running = _find_source(url)
    if running is None or not _is_its_file(config, running):
        return False
    answer = perform(url, operation, body=body, server=server, warns=False)
    click.echo(plain(answer["message"]).plain)
    return True


def _find_source(url: str) -> ConfigurationSource | None:
    """Return with which file a daemon runs, None if none does."""
    try:
        return ask(url, lambda client: client.configuration())
    except NoDaemon:
        return None


def _is_its_file(config: Path | None, running: ConfigurationSource) -> bool:
    return config is None or os.path.realpath(config) == os.path.realpath(running.path)


def _open(config: Path | None, url: str) -> None:
    """Open the file in an editor; what is saved is written if a daemon could use it, and a running one follows."""
    running = _find_source(url)
    path = config or (own_file() if running is None else Path(running.path))
    followed = running is not None and _is_its_file(path, running)
    open_editor(path, told=not followed)
    if followed:
        reloaded = perform(url, operations.RELOAD, warns=False)
        # It looks after its file, too, and may have been faster.
        is_new = reloaded.get("outcome") != "unchanged"
        click.echo(plain(reloaded["message"]).plain if is_new else "the daemon has taken it over already")
