"""The file that a daemon takes, changed by a command while none runs with it, or by a person in an editor.

What no daemon would take is not written, and what a person has typed is not lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from actors.errors import ConfigError
from supervisor.commands.common import plain, say
from supervisor.commands.outcomes import BadConfiguration, CommandFailed
from supervisor.commands.run import find_config
from supervisor.config import load, parse
from supervisor.config.edits import EMPTY, Change
from supervisor.config.remarks import lines
from supervisor.config.values import raise_new
from supervisor.host.files import make_private, read_if_there, replace_text, write_atomically

DRAFT_SUFFIX = ".mcpvisor.draft"
MARK = "\ufeff"
"""A byte order mark."""


def edit_file(config: Path | None, name: str, change: Callable[[str, str], str], *, told: bool = True) -> None:
    """Change the file, if that is of use. `name`: the server that is changed; `told`: say how a daemon is started."""
    path = config or own_file()
    try:
        _write(path, name, lambda text: change(text, str(path)))
    except ConfigError as error:
        raise BadConfiguration(str(error)) from None
    if told:
        click.echo("no daemon runs with this file; start one with: mcpvisor run")


def own_file() -> Path:
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
    raise_new(parse(after, path, os.environ).problems, _problems(before, path))
    backup = replace_text(path, before, after)
    kept = f"; what it held is in {backup}" if backup is not None else ""
    say(f"wrote {path}{kept}")
    for note in lines(note for note in load(path, os.environ).notes if not name or note.server == name):
        say(f"note: {plain(note).plain}")


def _problems(text: str | None, path: Path) -> tuple[ConfigError, ...]:
    """Return why entries are left out already."""
    try:
        return () if text is None else parse(text, path, os.environ).problems
    except ConfigError:
        return ()


def open_editor(path: Path, *, told: bool) -> None:
    """Open the file in the editor until what is saved is of use, or nobody wants to go on; see `edit_file`."""
    draft = ""

    def edit(text: str, _: str) -> str:
        nonlocal draft
        saved = _let_edit(draft or text)
        if saved is None or saved == text:
            raise CommandFailed("nothing was changed")
        draft = saved
        return saved

    while True:
        try:
            edit_file(path, "", edit, told=told)
            return
        except CommandFailed as error:
            if not draft:
                raise
            error.show()
            if not _wanted_again():
                _keep(path, draft)
                raise CommandFailed(f"{path} is as it was") from None


def _let_edit(text: str) -> str | None:
    """Return what is saved, with the line ends and the mark that it had: click drops both."""
    try:
        saved = click.edit(text.removeprefix(MARK), extension=".json")
    except UnicodeDecodeError:
        raise CommandFailed("what the editor saved is not UTF-8") from None
    if saved is None:
        return None
    ended = saved.replace("\n", "\r\n") if "\r\n" in text else saved
    return MARK + ended if text.startswith(MARK) else ended


def _wanted_again() -> bool:
    with suppress(click.Abort):  # nobody is there to be asked
        return click.confirm("open the editor again?", default=True, err=True)
    say("")
    return False


def _keep(path: Path, draft: str) -> None:
    kept = path.with_name(path.name + DRAFT_SUFFIX)
    try:
        make_private(kept.parent)
        write_atomically(kept, draft.encode())
    except OSError as error:
        raise CommandFailed(f"what you wrote could not be kept in {kept}: {error.strerror}") from None
    say(f"what you wrote is kept in {kept}")
