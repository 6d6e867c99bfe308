"""`connect`: write us into the file of a client, and take us out of it again.

Exactly one entry comes and goes. A file that is as we left it gets back what it held before, byte for byte; in another
one only our entry is removed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from actors.errors import ConfigError
from actors.kit.paths import absolute
from supervisor.clients.connecting import edit_to_connect, edit_to_undo, own_names, restore
from supervisor.clients.documents import Edit, read_servers
from supervisor.clients.installed import ClientFile, is_installed, project_file, user_file
from supervisor.clients.own import PROGRAM, STDIO, own_entry
from supervisor.clients.secret_values import mask_entry
from supervisor.commands.common import DEFAULT_URL, console, plain, print_table, say, table, url_option
from supervisor.commands.edits import FileChange, FileReturn, agrees, edit_options, find_client
from supervisor.commands.outcomes import CommandFailed
from supervisor.config.clients.client import ClientProgram, Machine
from supervisor.config.clients.table import CLIENTS
from supervisor.config.syntax.address import PORTS
from supervisor.daemon_client.client import base_url
from supervisor.host.files import copies_of, read_if_there

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class DaemonPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where we are: the address for clients, and `host:port`."""

    url: str
    listen: str


def find_daemon(url: str) -> DaemonPlace:
    """Return where the daemon is for any address of it; that of a door is kept. Raises `UsageError`."""
    door = url.strip() if "://" in url else f"http://{url.strip()}"
    if not urlsplit(door).path.rstrip("/").startswith("/mcp/") and not urlsplit(door).query:
        door = f"{base_url(url)}/mcp"
    parts = urlsplit(door)
    try:
        port = parts.port or PORTS[parts.scheme]
    except (KeyError, ValueError):
        raise click.UsageError("--url is no address of a daemon") from None
    host = parts.hostname or ""
    return DaemonPlace(url=door, listen=f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def this_machine() -> Machine:
    return Machine(platform=sys.platform, environ=dict(os.environ), home=str(Path.home()))


@click.command()
@click.argument("client", required=False)
@url_option
@click.option("--name", default=PROGRAM, metavar="NAME", help="Name of the daemon in the client.")
@click.option("--project", is_flag=True, help="Use the file of the project in this directory, not that of the user.")
@click.option("--undo", is_flag=True, help="Take the daemon out of the client again.")
@edit_options
def connect(*, client: str | None, url: str, name: str, project: bool, undo: bool, yes: bool, dry_run: bool) -> None:
    """Write the daemon into the file of a CLIENT, after a yes.

    It shows the change first. Without CLIENT it lists the clients on this machine.

    \b
    mcpvisor connect cursor
    mcpvisor connect cursor --undo
    """
    if not _NAME.fullmatch(name):
        raise click.UsageError("--name takes letters, digits, - and _")
    daemon, machine = find_daemon(url), this_machine()
    if client is None:
        _list(machine, daemon, project=project)
        return
    chosen = find_client(client)
    if not project and not is_installed(chosen, machine):
        say(f"Note: {chosen.title} was not found on this machine.")
    try:
        file = project_file(chosen, Path.cwd()) if project else user_file(chosen, machine)
        change = _undo(file, name, daemon) if undo else _add(file, name, daemon)
        if change is None:
            return
        change.show()
        if dry_run:
            return
        gone = isinstance(change, FileReturn) and change.held is None
        if not agrees(f"Remove {change.path}?" if gone else f"Write this to {change.path}?", yes=yes):
            raise CommandFailed("nothing was written")
        change.write()
        if isinstance(change, FileReturn):
            say(f"{chosen.title}: {chosen.afterwards}")
        else:
            _advise(chosen, name, daemon, change)
    except ConfigError as error:
        own = f"\nOr use its own command: {_command(chosen, name, daemon)}" if chosen.command and not undo else ""
        raise CommandFailed(f"{error}{own}") from None


def _servers(file: ClientFile) -> dict[str, Any]:
    return read_servers(file.client.format, file.text or "", file.client.servers, str(file.path))


def _add(file: ClientFile, name: str, daemon: DaemonPlace) -> FileChange | None:
    client, servers = file.client, _servers(file)
    entry = own_entry(client, daemon.url, _program(daemon))
    edit = edit_to_connect(client, servers, name, entry, (daemon.listen,))
    if edit is None:
        say(f"{client.title} is connected already, in {file.path}.")
        return None
    others = [each for each in own_names(servers, (daemon.listen,)) if each != name]
    if others:
        say(f"Note: it leads here already as {plain(', '.join(others)).plain}.")
    return FileChange(form=client.format, path=file.path, before=file.text, edits=[edit])


def _undo(file: ClientFile, name: str, daemon: DaemonPlace) -> FileReturn | None:
    client, servers = file.client, _servers(file)
    undo = edit_to_undo(client, servers, name, (daemon.listen,))
    if undo is None:
        say(f"{client.title} is not connected: nothing of us is in {file.path}.")
        return None
    entry = servers[undo.where[-1]]
    copies = [read_if_there(copy) for copy in copies_of(file.path)]
    held = restore(client, file.text or "", [*copies, None], undo, entry)
    led = Edit(where=undo.where, entry=entry, shown=mask_entry(entry))
    return FileReturn(form=client.format, path=file.path, before=file.text, edits=[led], held=held)


def _advise(client: ClientProgram, name: str, daemon: DaemonPlace, change: FileChange) -> None:
    """Say what the client needs now. Raises `CommandFailed` if it has written over the file already."""
    say(f"{client.title}: {client.afterwards}")
    if client.rewrites:
        if read_if_there(change.path) != change.after:
            raise CommandFailed(f"{client.title} runs and has written over {change.path}: close it, then try again")
        own = f", or use its own command: {_command(client, name, daemon)}" if client.command else ""
        say(
            "It writes this file itself while it runs, maybe over this: `mcpvisor connect` shows whether it did. "
            f"Then close it and connect it again{own}"
        )


def _command(client: ClientProgram, name: str, daemon: DaemonPlace) -> str:
    return client.command.format(name=name, url=daemon.url)


def _program(daemon: DaemonPlace) -> list[str]:
    """Return the command line that a client starts us by, with an absolute path: its PATH is not that of a shell."""
    words = [STDIO] if daemon.url == f"{DEFAULT_URL}/mcp" else [STDIO, "--url", daemon.url]
    program = shutil.which(PROGRAM) or (sys.argv[0] if Path(sys.argv[0]).name == PROGRAM else None)
    return [absolute(program), *words] if program else [sys.executable, "-m", "supervisor", *words]


def _list(machine: Machine, daemon: DaemonPlace, *, project: bool) -> None:
    """Print the clients that are installed, whether each is connected, and how many servers it has besides."""
    rows = table("CLIENT", "CONNECTED", "SERVERS", "FILE", right=("SERVERS",))
    absent = []
    for client in CLIENTS:
        if not is_installed(client, machine):
            absent.append(client.name)
        elif client.project or not project:
            rows.add_row(client.name, *_describe(client, machine, daemon, project=project))
    if rows.row_count:
        print_table(console(), rows)
        say("Connect one with: mcpvisor connect CLIENT; take its servers over with: mcpvisor import CLIENT")
    else:
        say("No client was found on this machine.")
    say(f"Not found here: {', '.join(absent)}")


def _describe(client: ClientProgram, machine: Machine, daemon: DaemonPlace, *, project: bool) -> tuple[str, str, str]:
    try:
        file = project_file(client, Path.cwd()) if project else user_file(client, machine)
        servers = _servers(file)
    except ConfigError as error:
        return "cannot be read", "-", plain(error).plain
    own = own_names(servers, (daemon.listen,))
    connected = f"as {', '.join(own)}" if own else "elsewhere" if PROGRAM in servers else "no"
    return plain(connected).plain, str(len(servers.keys() - {*own, PROGRAM})), plain(file.path).plain
