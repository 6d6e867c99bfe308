"""`connect`: write us into the file of a client, and take us out of it again.

One entry comes and goes, or one for each server: that is a matter of the door, which `clients/doors.py` chooses. A file
that is as we left it gets back what it held before, byte for byte; in another one only our entries are removed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import click
import msgspec

from actors.errors import ConfigError
from actors.installation import DISABLED, shown
from actors.kit.paths import absolute
from supervisor import operations
from supervisor.bridge.address import read_address
from supervisor.clients import doors
from supervisor.clients.connecting import edits_to_connect, edits_to_undo, own_names, replaced, restore
from supervisor.clients.documents import Edit, mask_entry, read_servers
from supervisor.clients.doors import PROGRAM, STDIO, Door, DoorPlace, Offered, door_of, own_entry, read_door
from supervisor.clients.installed import ClientFile, is_installed, project_file, user_file
from supervisor.commands.common import DEFAULT_URL, ask, console, plain, print_table, say, table, url_option
from supervisor.commands.edits import FileChange, FileReturn, agrees, edit_options, find_client
from supervisor.commands.outcomes import CommandFailed
from supervisor.config.client_table import CLIENTS
from supervisor.config.clients import ClientProgram, Machine, value_of
from supervisor.config.keys import name_fault
from supervisor.daemon_client.client import DaemonClient, RequestRefused, base_url
from supervisor.host.files import copies_of, read_if_there
from supervisor.metatools.definitions import READ_ONLY

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class DaemonPlace(DoorPlace, frozen=True, kw_only=True):
    """Where we are: the address for clients, and `host:port`."""

    listen: str


def find_daemon(url: str) -> DaemonPlace:
    """Return where the daemon is for any address of it; that of a door is kept. Raises `UsageError`."""
    there, base = read_address(url), urlsplit(base_url(url))
    path, _, query = there.target.partition("?")
    path = path if base.path else doors.MAIN
    try:
        place = read_door(urlunsplit((base.scheme, base.netloc, path, query, "")))
    except ValueError as error:
        raise click.UsageError(f"--url: {plain(error).plain}") from None
    return DaemonPlace(url=place.url, base=place.base, door=place.door, listen=there.authority)


def this_machine() -> Machine:
    return Machine(platform=sys.platform, environ=dict(os.environ), home=str(Path.home()))


@click.command()
@click.argument("client", required=False)
@url_option
@click.option(
    "--door",
    type=click.Choice(list(doors.WORDS)),
    help="What the client gets, in place of what costs its model least: the four tools that find and run all others, "
    "these and one for reads, all tools, or an entry for each server.",
)
@click.option(
    "--name",
    metavar="NAME",
    help=f"Name of the daemon in the client, {PROGRAM} if not given; with --undo, of the one entry to take out.",
)
@click.option("--project", is_flag=True, help="Use the file of the project in this directory, not that of the user.")
@click.option("--undo", is_flag=True, help="Take the daemon out of the client again, with all its entries.")
@edit_options
def connect(
    *,
    client: str | None,
    url: str,
    door: Door | None,
    name: str | None,
    project: bool,
    undo: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Write the daemon into the file of a CLIENT, after a yes.

    It shows the change first, and says which door the client gets and why. Without CLIENT it lists the clients on this
    machine.

    \b
    mcpvisor connect cursor
    mcpvisor connect cursor --door four
    mcpvisor connect cursor --undo
    """
    if name is not None and not _NAME.fullmatch(name):
        raise click.UsageError("--name takes letters, digits, - and _")
    daemon, machine = find_daemon(url), this_machine()
    given = {"--undo": undo, "--door": door, "--name": name, "--yes": yes, "--dry-run": dry_run}
    if client is None and (for_one := [option for option, value in given.items() if value]):
        raise click.UsageError(f"CLIENT is missing, which {', '.join(for_one)} is about; mcpvisor connect lists them")
    if door is not None and not daemon.is_first:
        raise click.UsageError("--url names a door already: give the address without one, or leave out --door")
    if client is None:
        _list(machine, daemon, project=project)
        return
    chosen = find_client(client)
    if not project and not is_installed(chosen, machine):
        say(f"Note: {chosen.title} was not found on this machine.")
    entries = None if undo else _entries(chosen, daemon, door, name or PROGRAM)
    try:
        file = project_file(chosen, Path.cwd()) if project else user_file(chosen, machine)
        change = _undo(file, name or "", daemon) if entries is None else _add(file, entries, daemon)
        if change is None:
            return
        change.show()
        if dry_run:
            return
        gone = isinstance(change, FileReturn) and change.held is None
        if not agrees(f"Remove {change.path}?" if gone else f"Write this to {change.place}?", yes=yes):
            raise CommandFailed("nothing was written")
        change.write()
        if entries is None:
            say(f"{chosen.title}: {chosen.applied}")
        else:
            _advise(chosen, entries, change)
    except ConfigError as error:
        commands = _commands(chosen, entries) if entries is not None else ""
        raise CommandFailed(f"{error}\nOr use its own command: {commands}" if commands else str(error)) from None


class Entries(msgspec.Struct, frozen=True, kw_only=True):
    """What is written for a door: by name where each entry leads to, and the entry. `main`: our name in the client."""

    door: Door
    urls: dict[str, str]
    members: dict[str, dict[str, Any]]
    main: str


def _entries(client: ClientProgram, daemon: DaemonPlace, wanted: Door | None, name: str) -> Entries:
    """Choose a door, say so, and return what is written for it. Raises `CommandFailed` if that takes a daemon."""
    offered, wanted = _ask(daemon), wanted or daemon.door
    door, urls = wanted or "four", {name: daemon.url}
    if daemon.is_first:
        choice = doors.choose(client.facts, offered, wanted)
        say(f"{client.title} gets {choice}.")
        if offered is None and wanted is None:
            say("Start one with: mcpvisor run --config FILE. Connecting again then may choose another door.")
        door, urls = choice.door, {name: doors.address(daemon.url, choice.door)}
        if door == "by-effect" and offered is not None and not offered.by_effect:
            say("Note: this daemon does not know that door yet, and shows the four there.")
        if door == "servers":
            if offered is None or not offered.servers:
                raise CommandFailed("only a daemon that runs can say which servers there are: start it, then try again")
            prefix = "" if name == PROGRAM else f"{name}-"
            urls = {f"{prefix}{each}": doors.address(daemon.url, door, each) for each in offered.servers}
    more = doors.keeps_loaded(client.facts, door)
    members = {key: own_entry(client, at, _program(at), more) for key, at in urls.items()}
    return Entries(door=door, urls=urls, members=members, main=name)


def _ask(place: DaemonPlace) -> Offered | None:
    """Return what a daemon has; None if none runs there, or it does not tell us. Raises as `_look` does."""
    try:
        return ask(place.base, partial(_look, door=place.url.removeprefix(place.base)), warns=False)
    except CommandFailed:
        return None


async def _look(daemon: DaemonClient, door: str) -> Offered:
    """Return what a daemon has. Raises `UsageError` if it has no such `door`, a path and a query."""
    if missing := await daemon.missing(door):
        raise click.UsageError(f"--url: {plain(missing).plain}")
    status = await daemon.perform(operations.STATUS)
    names = [row["server"] for row in status["servers"] if shown(row) != DISABLED]
    tokens = status["tokens"]
    try:
        by_effect = READ_ONLY in await daemon.tools(doors.address(doors.MAIN, "by-effect"))
    except RequestRefused:
        by_effect = False
    return Offered(
        tools=status["totals"]["tools"],
        tokens=tokens["exposed_tokens"] if tokens["counted"] else None,
        servers=tuple(sorted(name for name in names if name_fault(name) is None)),  # and no launches
        meta_tokens=tokens["meta_tokens"],
        by_effect=by_effect,
    )


def _servers(file: ClientFile) -> dict[str, Any]:
    return read_servers(file.client.format, file.text or "", file.client.servers, str(file.path))


def _add(file: ClientFile, entries: Entries, daemon: DaemonPlace) -> FileChange | None:
    client, servers, listens = file.client, _servers(file), (daemon.listen,)
    gone = replaced(servers, entries.members, listens, entries.door, entries.main) if daemon.is_first else []
    edits = edits_to_connect(client, servers, entries.members, listens, gone)
    if not edits:
        say(f"{client.title} is connected already, in {file.path}.")
        return None
    others = [each for each in own_names(servers, listens) if each not in entries.members and each not in gone]
    if others:
        say(f"Note: it leads here already as {plain(', '.join(others)).plain}.")
    return FileChange(form=client.format, path=file.path, before=file.text, edits=edits)


def _undo(file: ClientFile, name: str, daemon: DaemonPlace) -> FileReturn | None:
    client, servers = file.client, _servers(file)
    places = [each.where for each in edits_to_undo(client, servers, name, (daemon.listen,))]
    if not places:
        say(f"{client.title} is not connected: nothing of us is in {file.path}.")
        return None
    entries = {where[-1]: servers[where[-1]] for where in places}
    copies = [read_if_there(copy) for copy in copies_of(file.path)]
    held = restore(client, file.text or "", [*copies, None], entries)
    led = [Edit(where=at, entry=entries[at[-1]], shown=mask_entry(entries[at[-1]])) for at in places]
    return FileReturn(form=client.format, path=file.path, before=file.text, edits=led, held=held)


def _advise(client: ClientProgram, entries: Entries, change: FileChange) -> None:
    """Say what the client needs now. Raises `CommandFailed` if it has written over the file already."""
    say(f"{client.title}: {client.afterwards}")
    if entries.door in ("all", "servers") and value_of(client.facts.heeds_changes) is not True:
        say("A tool that comes later may reach it only when it is started again.")
    if entries.door == "servers":
        say("For servers that come and go later, give the same command again.")
    if client.rewrites:
        if read_if_there(change.path) != change.after:
            raise CommandFailed(f"{client.title} runs and has written over {change.path}: close it, then try again")
        commands = _commands(client, entries)
        own = f", or use its own command: {commands}" if commands else ""
        say(
            "It writes this file itself while it runs, maybe over this: `mcpvisor connect` shows whether it did. "
            f"Then close it and connect it again{own}"
        )


def _commands(client: ClientProgram, entries: Entries) -> str:
    """Return how its own command adds what is written, for a shell; empty if it has none."""
    if not client.command:
        return ""
    quotes = "'" in client.command  # by itself
    shown = str if quotes else shlex.quote
    return " && ".join(client.command.format(name=shown(name), url=shown(url)) for name, url in entries.urls.items())


def _program(url: str) -> list[str]:
    """Return the command line that a client starts us by, with an absolute path: its PATH is not that of a shell."""
    words = [STDIO] if url == f"{DEFAULT_URL}{doors.MAIN}" else [STDIO, "--url", url]
    program = shutil.which(PROGRAM) or (sys.argv[0] if Path(sys.argv[0]).name == PROGRAM else None)
    return [absolute(program), *words] if program else [sys.executable, "-m", "supervisor", *words]


def _list(machine: Machine, daemon: DaemonPlace, *, project: bool) -> None:
    """Print the clients that are installed, the door that each has, and how many servers it has besides."""
    rows = table("CLIENT", "CONNECTED", "DOOR", "SERVERS", "FILE", right=("SERVERS",))
    absent, other = [], []
    offered = _ask(daemon)
    for client in CLIENTS:
        if not is_installed(client, machine):
            absent.append(client.name)
        elif client.project or not project:
            row = _describe(client, machine, daemon, project=project)
            rows.add_row(client.name, *row)
            choice = doors.choose(client.facts, offered)
            if offered is not None and row[1] not in ("-", choice.door):
                other.append(f"{client.name} ({choice.door})")
    if rows.row_count:
        print_table(console(), rows)
        say("Connect one with: mcpvisor connect CLIENT; take its servers over with: mcpvisor import CLIENT")
    else:
        say("No client was found on this machine.")
    if other:
        say(f"Another door would be chosen now for: {', '.join(other)}")
    say(f"Not found here: {', '.join(absent)}")


def _describe(
    client: ClientProgram, machine: Machine, daemon: DaemonPlace, *, project: bool
) -> tuple[str, str, str, str]:
    try:
        file = project_file(client, Path.cwd()) if project else user_file(client, machine)
        servers = _servers(file)
    except ConfigError as error:
        return "cannot be read", "-", "-", plain(error).plain
    listens = (daemon.listen,)
    own = own_names(servers, listens)
    connected = f"as {', '.join(own)}" if own else "elsewhere" if PROGRAM in servers else "no"
    door = ", ".join(dict.fromkeys(door_of(servers[name], listens) or "" for name in own)) or "-"
    return plain(connected).plain, door, str(len(servers.keys() - {*own, PROGRAM})), plain(file.path).plain
