"""`import`: take the servers of clients over into our configuration, and out of the clients if that is wanted.

Nothing is written before it was shown, secrets by their names only. What cannot be read at a client (an answer that it
keeps for itself) stays there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec.structs import replace

from actors.command_line import command
from actors.errors import ConfigError
from supervisor.clients.documents import Edit, mask_entry, secrets_of
from supervisor.clients.entries import Move, ServerSource, plan_moves
from supervisor.clients.imports import SUFFIX, Import, Moved, digest, edits_back, edits_out, read_imports, write_imports
from supervisor.clients.installed import ClientFile, is_installed, project_file, user_file
from supervisor.commands.common import ask, console, plain, print_table, say, table, url_option
from supervisor.commands.connect import find_daemon, this_machine
from supervisor.commands.edits import FileChange, FileReturn, agrees, edit_options, find_client
from supervisor.commands.outcomes import CommandFailed
from supervisor.config import parse
from supervisor.config.client_table import CLIENTS
from supervisor.config.clients import ClientProgram, Machine
from supervisor.config.jsonc import read_document
from supervisor.config.remarks import lines
from supervisor.host.files import copies_of, keep_text, read_if_there

_SECTIONS = ("mcpServers", "servers")


@click.command("import")
@click.argument("client", required=False)
@url_option
@click.option("--into", type=click.Path(path_type=Path), metavar="FILE", help="Write this configuration.")
@click.option("--project", is_flag=True, help="Read the file of the project in this directory, not that of the user.")
@click.option("--move", is_flag=True, help="Then take the servers out of the client, too.")
@click.option("--undo", is_flag=True, help="Put back what the last import moved, and take out what it wrote.")
@edit_options
def import_(
    *, client: str | None, url: str, into: Path | None, project: bool, move: bool, undo: bool, yes: bool, dry_run: bool
) -> None:
    """Take over the servers of a CLIENT, after a yes.

    It shows what becomes of each server first. Without CLIENT it takes those of all clients on this machine. They go to
    ~/.config/mcpvisor/mcp.json, or to another file by --into.

    \b
    mcpvisor import cursor --dry-run
    mcpvisor import --undo
    """
    if undo and (client or project or move):
        raise click.UsageError("--undo undoes the whole last import: it goes with --into, --yes and --dry-run alone")
    machine = this_machine()
    target = into or Path(machine.home) / ".config" / "mcpvisor" / "mcp.json"
    try:
        if undo:
            _undo(target, yes=yes, dry_run=dry_run)
            return
        files = [file for file in _files(client, machine, project=project) if not _is_same(file.path, target)]
        sources = [source for file in files for source in file.sources(None if project else str(Path.cwd()))]
        text = read_if_there(target)
        known, listens = _entries_here(text, target, find_daemon(url).listen)
        moves = plan_moves(sources, known, listens)
        if not moves:
            where = f"{len(files)} file{'s' if len(files) != 1 else ''} of clients"
            say(f"There is nothing to take over: in {where} there is no server but this daemon.")
            return
        if into is None:
            _remark(url, target)
        _show(moves)
        journal = _Journal(target)
        _take(moves, target, text, journal, yes=yes, dry_run=dry_run)
        _leave(moves, files, journal, move=move, yes=yes, dry_run=dry_run)
    except ConfigError as error:
        raise CommandFailed(str(error)) from None


def _files(client: str | None, machine: Machine, *, project: bool) -> list[ClientFile]:
    """Return the files of a client, or of all that are here; of these, what cannot be read is said and left out."""
    if client is not None:
        chosen = find_client(client)
        return [project_file(chosen, Path.cwd()) if project else user_file(chosen, machine)]
    files = []
    for each in CLIENTS:
        if is_installed(each, machine) and (each.project or not project):
            try:
                file = project_file(each, Path.cwd()) if project else user_file(each, machine)
                list(file.sources())
            except ConfigError as error:
                say(f"{each.title} is left out: {plain(error).plain}")
            else:
                files.append(file)
    return files


def _remark(url: str, target: Path) -> None:
    """Say so if a daemon runs with another file. It is not taken unasked: whoever listens there would get secrets."""
    try:
        running = ask(url, lambda daemon: daemon.configuration()).path
    except CommandFailed:  # none runs, or one that does not tell
        return
    if not _is_same(Path(running), target):
        say(f"Note: the daemon that runs reads {plain(running).plain}; --into takes it instead of {target}.")


def _is_same(path: Path, target: Path) -> bool:
    """Say whether a client's file is our configuration: taking servers out of it would be taking them from us."""
    return os.path.realpath(path) == os.path.realpath(target)


def _entries_here(text: str | None, target: Path, listen: str) -> tuple[dict[str, dict[str, object]], set[str]]:
    """Return the entries of our configuration by name, and where we may listen. Raises `ConfigError`."""
    top = read_document(text, str(target)).value if text and text.strip() else {}
    sections = [top.get(key) for key in (*_SECTIONS, "supervisor")] if isinstance(top, dict) else []
    *servers, own = [section if isinstance(section, dict) else {} for section in sections or [None] * 3]
    own_listen = own.get("listen")
    known = {name: members for section in servers for name, members in section.items() if isinstance(members, dict)}
    return known, {listen, *([own_listen] if isinstance(own_listen, str) else [])}


def _show(moves: list[Move]) -> None:
    """Print what becomes of each server, and what of it cannot go over."""
    rows = table("SERVER", "FROM", "BECOMES")
    for move in moves:
        rows.add_row(plain(move.key), _origin(move.source), plain(_fate(move)))
    print_table(console(), rows)
    for move in moves:
        for note in move.taken.notes if move.taken else ():
            say(f"{plain(move.key).plain}: {plain(note).plain}")
        if move.is_new and move.taken and move.taken.left_out:
            say(f"{plain(move.key).plain}: has no meaning here: {plain(', '.join(move.taken.left_out)).plain}")


def _origin(source: ServerSource) -> str:
    return source.client.title + (" (this directory)" if source.folder else "")


def _fate(move: Move) -> str:
    if move.refusal:
        return f"stays there: {move.refusal}"
    if not move.is_new:
        return f"here already as {move.name}"
    return "new" if move.name == move.key else f"new, as {move.name}"


class _Journal:
    """Keeps what this import does. It is written before each change, so that a change that was made is in it."""

    def __init__(self, target: Path) -> None:
        self._path = target.with_name(target.name + SUFFIX)
        self._before = read_imports(read_if_there(self._path), str(self._path))
        self._now = Import(taken={}, section=_SECTIONS[0])

    def note_taken(self, edits: list[Edit]) -> None:
        taken = {each.where[-1]: digest(each.entry) for each in edits}
        self._write(replace(self._now, taken=taken, section=edits[0].where[0]))

    def note_moved(self, change: FileChange) -> None:
        moved = Moved(
            path=str(change.path),
            form=change.form,
            before=digest(change.before or ""),
            after=digest(change.after),
            where=tuple(each.where for each in change.edits),
        )
        self._write(replace(self._now, moved=(*self._now.moved, moved)))

    def _write(self, now: Import) -> None:
        text = write_imports([*self._before, now])
        keep_text(self._path, text)
        self._now = now


def _take(moves: list[Move], target: Path, text: str | None, journal: _Journal, *, yes: bool, dry_run: bool) -> None:
    """Write what is new into our configuration, after a yes. Raises `CommandFailed` for a no."""
    new = {move.name: move.taken.entry for move in moves if move.is_new and move.taken}
    if not new:
        say(f"{target} has all of them.")
        return
    change = FileChange(form="json", path=target, before=text, edits=list(_edits(new, text, target)))
    change.show()
    secrets = [f"{name}: {', '.join(names)}" for name, entry in new.items() if (names := secrets_of(entry))]
    if secrets:
        say(f"Secrets that would stand in {target}, too: {plain('; '.join(secrets)).plain}")
    configuration = parse(change.after, target, os.environ)
    faults = [each for each in (*configuration.problems, *configuration.notes) if each.server in new]
    for line in lines(faults):
        say(f"note: {plain(line).plain}")
    if dry_run:
        return
    many = f"these {len(new)} servers" if len(new) > 1 else "this server"
    if not agrees(f"Write {many} to {target}?", yes=yes):
        raise CommandFailed("nothing was written")
    journal.note_taken(change.edits)
    change.write()
    start = command("run", "--config", str(target))
    say(f"A daemon that runs with this file reads it by itself; to start one: {start}")


def _edits(new: dict[str, dict[str, object]], text: str | None, target: Path) -> Iterator[Edit]:
    top = read_document(text, str(target)).value if text and text.strip() else {}
    section = next((key for key in _SECTIONS if isinstance(top, dict) and key in top), _SECTIONS[0])
    for name, entry in new.items():
        yield Edit(where=(section, name), entry=entry, shown=mask_entry(entry))


def _leave(
    moves: list[Move], files: list[ClientFile], journal: _Journal, *, move: bool, yes: bool, dry_run: bool
) -> None:
    """Take what is here now out of the clients, after a yes for each file; without `move` say who still has it."""
    have = []
    for file in {file.path: file for file in files}.values():
        there = [each for each in moves if each.taken and each.source.path == str(file.path)]
        ready = [each for each in there if each.taken and not each.taken.notes]
        if not move and there:
            have.append(file.client.title)
        if not move or not ready:
            continue
        for each in there:
            if each not in ready:
                say(f"{plain(each.key).plain} stays in {file.client.title}, as not all of it could be read.")
        change = _removal(file, ready)
        change.show()
        if not dry_run and agrees(f"Take them out of {file.path}?", yes=yes):
            journal.note_moved(change)
            change.write()
            _advise(file.client)
            say("To put them back: mcpvisor import --undo")
    if have:
        say(f"They are still in {', '.join(have)}, too, and started from there by themselves: --move takes them out.")


def _removal(file: ClientFile, moves: list[Move]) -> FileChange:
    places = dict.fromkeys((*each.source.where, each.key) for each in moves)
    edits = [Edit(where=where) for where in places]
    return FileChange(form=file.client.format, path=file.path, before=file.text, edits=edits)


def _undo(target: Path, *, yes: bool, dry_run: bool) -> None:
    """Undo the last import: all of it is looked at before anything is written. Raises `ConfigError`."""
    kept = target.with_name(target.name + SUFFIX)
    imports = read_imports(read_if_there(kept), str(kept))
    if not imports:
        say(f"There is no import into {target} to undo.")
        return
    last = imports[-1]
    changes = [change for moved in last.moved if (change := _way_back(moved)) is not None]
    text = read_if_there(target)
    out, changed = edits_out(last, text or "", str(target))
    for name in changed:
        say(f"{plain(name).plain} stays in {target}, as it was changed since.")
    if out:
        changes.append(FileChange(form="json", path=target, before=text, edits=out))
    for change in changes:
        change.show()
    if not changes:
        say("Nothing of the last import is left to undo.")
    if dry_run:
        return
    if changes and not agrees(f"Write this to {' and '.join(change.place for change in changes)}?", yes=yes):
        raise CommandFailed("nothing was written")
    for change in changes:
        change.write()
    keep_text(kept, write_imports(imports[:-1]))


def _way_back(moved: Moved) -> FileChange | None:
    """Return what puts back what was moved out of a file, None if it has it. Raises `ConfigError`."""
    path = Path(moved.path)
    text = read_if_there(path)
    if digest(text or "") == moved.before:
        return None
    copies = (read_if_there(copy) for copy in copies_of(path))
    copy = next((each for each in copies if each is not None and digest(each) == moved.before), None)
    if copy is None:
        raise ConfigError(
            "the copy of what it held before the import is gone", path=moved.path, hint="nothing was written"
        )
    if digest(text or "") == moved.after:
        edits = [Edit(where=where) for where in moved.where]
        return FileReturn(form=moved.form, path=path, before=text, edits=edits, held=copy)
    return FileChange(form=moved.form, path=path, before=text, edits=edits_back(moved, text or "", copy))


def _advise(client: ClientProgram) -> None:
    rules = f" Rules for these tools, {client.rules}, match nothing any more." if client.rules else ""
    say(f"{client.title}: {client.applied}{rules} Connect it with: {command('connect', client.name)}")
