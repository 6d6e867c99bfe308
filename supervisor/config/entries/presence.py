"""What a local server needs of this machine: its program and its directory. Looks at the file system, and blocks.

What is missing is a remark and no problem: it may be there by the time the server is started, and the start says more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from actors.errors import SpawnFailed
from actors.kit.paths import absolute, objection_to_directory
from actors.transport.redaction import without_secrets
from actors.transport.stdio.command import build_environment, is_whole_line, nearest_command, resolve_command
from actors.transport.stdio.remedies import how_to_provide
from actors.transport.stdio.sandbox import bwrap_program
from supervisor.config.syntax.values import Remark

WORDS = 'leave its first word, and put each word after it into "args": "command": "npx", "args": ["-y", "some-package"]'


Trouble = tuple[str, str]
"""What is wrong, and what to do."""


def missing_of(
    own: Mapping[str, Any], environ: Mapping[str, str], ask: Callable[[str, str, str], Trouble | None]
) -> Iterator[Remark]:
    """Yield a remark for a directory and for a program that cannot be used now. `own` are expanded keys of an entry.

    No text of the entry is repeated: it may be a secret. `ask` is `trouble_with`, or remembers what that said.
    """
    cwd = absolute(own.get("cwd") or "")
    if objection := objection_to_directory(cwd):
        yield ("cwd",), f"the directory {objection}", "make it, or correct the path"
        return
    yield from _missing_for_sandbox(own)
    path = build_environment(own.get("env", {}), environ)["PATH"]
    if trouble := ask(own["command"], path, cwd):
        yield ("command",), *trouble


def trouble_with(command: str, path: str, cwd: str) -> Trouble | None:
    """Return why a program cannot be started, None if it can. A search for a name that is like it takes 10 ms."""
    try:
        resolve_command(command, path=path, cwd=cwd)
    except SpawnFailed as error:
        if is_whole_line(command, path, cwd):
            return "the program cannot be started: this is a whole command line", WORDS
        near = nearest_command(command, path) if "/" not in command and not error.hint else None
        shown = without_secrets(command)
        what = error.message.replace(f"command {shown!r}", "it").removeprefix(f"{shown}: ")
        return f"the program cannot be started: {what}", how_to_provide(command, error.hint, near)
    return None


def _missing_for_sandbox(own: Mapping[str, Any]) -> Iterator[Remark]:
    sandbox = own.get("sandbox", {})
    if sandbox.get("kind", "none") == "none":
        return
    try:
        bwrap_program()
    except SpawnFailed as error:
        yield ("sandbox",), f"the server cannot be started: {error.message}", error.hint
    for key in ("read", "write"):
        for at, place in enumerate(sandbox.get(key, ())):
            if objection_to_directory(place) == "does not exist":
                yield ("sandbox", key, at), "there is no such file or directory", "make it, or take it out of the list"
