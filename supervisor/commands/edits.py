"""Changes of files that belong to somebody else: shown, agreed to, written.

Nothing is written without a yes: of the person at the terminal, or by `--yes` in a script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich.text import Text

from actors.kit.paths import leads_to
from actors.transport.redaction import HIDDEN
from supervisor.clients.documents import Edit, describe_edits, edit
from supervisor.commands.common import console, plain, say
from supervisor.commands.outcomes import CommandFailed
from supervisor.commands.questions import is_terminal
from supervisor.config.client_table import CLIENTS
from supervisor.config.clients import ClientProgram, Format
from supervisor.config.keys import nearest
from supervisor.host.files import remove_file, replace_text

Command = TypeVar("Command", bound=Callable[..., Any])

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one file. `before` is its text as it was read, None if there is none."""

    form: Format
    path: Path
    before: str | None
    edits: list[Edit]

    @property
    def after(self) -> str:
        """Return the new text. Raises `ConfigError` if the change cannot be made."""
        return edit(self.form, self.before or "", self.edits, str(self.path))

    @property
    def place(self) -> str:
        """Which file is written: the path, and where it leads if it is a link."""
        target = leads_to(str(self.path))
        return f"{self.path} (a link to {target})" if target else str(self.path)

    def show(self) -> None:
        """Print the change as a unified diff without secrets. Raises `ConfigError` as `after` does."""
        out = console()
        lines = list(self.describe())
        for line in lines:
            out.print(Text(_visible(line), style=_STYLES.get(line[:1], "")), soft_wrap=True)
        if any(HIDDEN in line for line in lines):
            say(f"{HIDDEN} stands for what is in the file and not shown here.")

    def describe(self) -> Iterator[str]:
        return describe_edits(self.form, self.before or "", self.edits, str(self.path))

    def write(self) -> None:
        """Write it. Raises `ConfigError` if the file has changed since, or cannot be written."""
        backup = replace_text(self.path, self.before, self.after, keeps_all=True)
        say(f"Wrote {self.path}" + (f"; what it held is in {backup}." if backup else "."))


class FileReturn(FileChange, frozen=True, kw_only=True):
    """The way back to what a file `held`, byte for byte, None for no file; `edits` led from there to where it is."""

    held: str | None

    @property
    def after(self) -> str:
        return self.held or ""

    def describe(self) -> Iterator[str]:
        return describe_edits(self.form, self.after, self.edits, str(self.path), back=True)

    def write(self) -> None:
        if self.held is not None:
            super().write()
        else:
            remove_file(self.path, self.before or "")
            say(f"Removed {self.path}, which held nothing else.")


def _visible(line: str) -> str:
    """Return a line of a file as it may be shown, its indentation kept."""
    lead = len(line) - len(line.lstrip(" \t+-"))
    return line[:lead].replace("\t", "    ") + plain(line[lead:]).plain


def edit_options(command: Command) -> Command:
    yes = click.option("--yes", "-y", is_flag=True, help="Write without asking.")
    dry = click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
    return yes(dry(command))


def agrees(question: str, *, yes: bool) -> bool:
    """Return whether it may be written. Raises `CommandFailed` where nobody can be asked."""
    if yes:
        return True
    if not is_terminal():
        raise CommandFailed("nothing was written, as nobody can be asked here: add --yes to write this")
    return click.confirm(question, default=False, err=True)


def find_client(name: str) -> ClientProgram:
    """Return the client of a name. Raises `UsageError` with the nearest name."""
    for client in CLIENTS:
        if client.name == name:
            return client
    word = name.casefold().replace(" ", "-")
    names = [client.name for client in CLIENTS]
    titled = [
        client.name
        for client in CLIENTS
        if word and word in f"{client.name} {client.title}".casefold().replace(" ", "-")
    ]
    likely = titled or [each for each in names if each in word] or [each for each in (nearest(word, names),) if each]
    hint = f"did you mean {' or '.join(likely)}?" if likely else f"known are {', '.join(names)}"
    raise click.UsageError(f"no client is called {plain(name).plain!r}: {hint}")
