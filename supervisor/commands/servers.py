"""`add`, `remove` and `edit`: the servers of the configuration, by command. A running daemon follows at once.

- A running daemon changes its own file, and follows. Where none runs it is the file that `mcpvisor run` would take.
  Comments, order and layout stay, and what it held is kept in a copy beside it.
- An entry that would be left out is not written, nor is a file that no daemon would take.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from actors.errors import ConfigError
from actors.kit.paths import absolute
from supervisor.client import DaemonClient
from supervisor.commands.common import DEFAULT_URL, ask, plain, say
from supervisor.commands.completion import complete_server
from supervisor.commands.outcomes import BadConfiguration, CommandFailed, NoDaemon
from supervisor.commands.run import find_config
from supervisor.config import load, parse
from supervisor.config.entries.edits import EMPTY, Change, add_entry, change_entry, remove_entry
from supervisor.config.entries.remarks import lines
from supervisor.config.syntax.values import SeveralErrors
from supervisor.host.datadir import default_data_dir
from supervisor.host.files import read_if_there, replace_text

Values = dict[str, Any]

config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="Configuration file, if not the daemon's."
)
daemon_option = click.option(
    "--daemon", envvar="MCPVISOR_URL", default=DEFAULT_URL, metavar="URL", help="The daemon; also MCPVISOR_URL."
)
set_option = click.option(
    "--set", "given", multiple=True, metavar="KEY=VALUE", help="Another key of the entry; JSON or text, dots go deeper."
)


@click.command()
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", metavar="URL", help="Address of a remote server, instead of a command.")
@click.option("--env", "-e", multiple=True, metavar="NAME[=VALUE]", help="A variable; NAME alone: the daemon's own.")
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="A header for a remote server; may be repeated.")
@click.option("--cwd", metavar="DIR", help="The directory it starts in.")
@click.option("--ephemeral", is_flag=True, help="Not to the file: only until the running daemon ends.")
@set_option
@config_option
@daemon_option
def add(*, name: str, ephemeral: bool, config: Path | None, daemon: str, **written: Any) -> None:
    """Add the server NAME: a COMMAND with its arguments behind `--`, or one with an address.

    \b
    mcpvisor add files -- npx -y @modelcontextprotocol/server-filesystem ~/notes
    mcpvisor add tickets --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${TICKETS_KEY}'
    """
    entry = entry_of(**written)
    body = {"name": name, "entry": entry, "ephemeral": ephemeral}
    if _ask_daemon(config, daemon, "POST", "", body):
        return
    if ephemeral:
        raise CommandFailed("no daemon runs that could have it until it ends: leave --ephemeral out, or start one")
    _edit(config, name, lambda text, path: add_entry(text, name, entry, path))


@click.command()
@click.argument("name", shell_complete=complete_server)
@config_option
@daemon_option
def remove(*, name: str, config: Path | None, daemon: str) -> None:
    """Remove the server NAME from the configuration; its calls in flight may end."""
    if not _ask_daemon(config, daemon, "DELETE", name, {}):
        _edit(config, name, lambda text, path: remove_entry(text, name, path))


@click.command()
@click.argument("name", required=False, shell_complete=complete_server)
@set_option
@click.option("--unset", multiple=True, metavar="KEY", help="A key of the entry that goes.")
@config_option
@daemon_option
def edit(*, name: str | None, given: tuple[str, ...], unset: tuple[str, ...], config: Path | None, daemon: str) -> None:
    """Change keys of the server NAME, or open the whole file in your editor ($VISUAL, $EDITOR) and check what you save.

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
    changes: dict[tuple[str, ...], Any] = {**_values(given), **{tuple(key.split(".")): None for key in unset}}
    if not _ask_daemon(config, daemon, "PATCH", name, {"entry": _nest(changes)}):
        _edit(config, name, lambda text, path: change_entry(text, name, changes, path))


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
    entry: Values = {"command": command[0], "args": list(command[1:])} if command else {"url": url}
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
    return {tuple(key.split(".")): _value(text) for key, text in pairs}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _split(text: str, sign: str, option: str) -> tuple[str, str]:
    name, there, value = text.partition(sign)
    if not there or not name.strip():
        raise click.UsageError(f"{option} takes NAME{sign}VALUE")
    return name.strip(), value


def _ask_daemon(config: Path | None, url: str, method: str, server: str, body: Values) -> bool:
    """Have a running daemon change its file; False if none runs, or with another file than `config`."""

    async def change(client: DaemonClient) -> Values | None:
        source = await client.configuration()
        if config is not None and absolute(str(config)) != source["path"]:
            return None
        return await client.edit(method, server, body, _token(source))

    try:
        answer = ask(url, change)
    except NoDaemon:
        return False
    if answer is not None:
        click.echo(plain(answer["message"]).plain)
    return answer is not None


def _open(config: Path | None, url: str) -> None:
    """Open the file in an editor; what is saved is written if a daemon could use it, and a running one follows."""

    def edit_text(text: str, path: str) -> str:
        saved = click.edit(text, extension=".json")
        if saved is None or saved == text:
            raise CommandFailed("nothing was changed")
        return saved

    try:
        running = Path(ask(url, lambda client: client.configuration())["path"])
    except NoDaemon:
        running = None
    _edit(config or running, "", edit_text, told=running is None)
    if running is not None and (config is None or absolute(str(config)) == str(running)):
        click.echo(plain(ask(url, lambda client: client.reload())["message"]).plain)


def _edit(config: Path | None, name: str, change: Callable[[str, str], str], *, told: bool = True) -> None:
    """Change the file, if that is of use. `name`: the server that is changed; `told`: say how a daemon is started."""
    path = config or _own_file()
    try:
        _write(path, name, lambda text: change(text, str(path)))
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None
    if told:
        click.echo("no daemon runs with this file; start one with: mcpvisor run")


def _own_file() -> Path:
    """Return the file that `run` would take, or the place for a new one. Raises `BadConfiguration` without a home."""
    try:
        return find_config(None, os.environ)
    except ConfigError as error:
        if not os.environ.get("HOME"):
            raise BadConfiguration(str(error)) from None
        return Path(os.environ["HOME"]) / ".config" / "mcpvisor" / "mcp.json"


def _write(path: Path, name: str, change: Change) -> None:
    before = read_if_there(path)
    after = change(EMPTY if before is None else before)
    configuration = parse(after, path, os.environ)
    faults = [problem for problem in configuration.problems if not name or problem.server == name]
    if faults:
        raise SeveralErrors(faults) if len(faults) > 1 else faults[0]
    backup = replace_text(path, before, after)
    kept = f"; what it held is in {backup}" if backup is not None else ""
    say(f"wrote {path}{kept}")
    for note in lines(note for note in load(path, os.environ).notes if not name or note.server == name):
        say(f"note: {plain(note).plain}")


def _token(source: Mapping[str, Any]) -> str:
    """Return what a daemon takes as proof. Raises `CommandFailed` if its key cannot be read: it is another user's."""
    file = Path(source.get("token_file") or default_data_dir(os.environ) / "page.key")
    try:
        return file.read_bytes().hex()
    except OSError as error:
        raise CommandFailed(f"the key of the daemon, {file}, cannot be read: {error.strerror}") from None
