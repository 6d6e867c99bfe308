"""What an entry says that is allowed, but does something else than its writer most likely meant. Pure.

Rules of this file:
- No remark repeats a text of the entry: that may be a secret.
- Only the shell, Windows and editors replace `~`, `$NAME` and `%NAME%`; a program that is started directly gets them as
  they are (execve(2)), so a text that begins with one is hardly meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from actors.errors import ConfigError
from supervisor.config.clients import ClientProgram
from supervisor.config.entry import ServerConfig
from supervisor.config.jsonc import KeyPath
from supervisor.config.keys import FOREIGN, meaning_of, nearest
from supervisor.config.settings import Settings
from supervisor.config.values import Remark, keys_of

_RUNNERS = ("npx", "uvx", "bunx", "pnpx")
"""Programs that fetch the package they are asked to run."""

_MOST_NAMED = 5
_MAX_LOOKED_AT_CHARS = 4096
"""Longer texts are not looked at: nobody types them, and an expression would have to walk over all of it."""


class _Shape(msgspec.Struct, frozen=True):
    """Texts of one shape and what to say of them. `places`: the keys it is looked for in."""

    pattern: re.Pattern[str]
    places: frozenset[str]
    message: str
    hint: str


_EVERYWHERE = frozenset({"command", "args", "env", "cwd", "url", "headers"})
_PLACEHOLDER = re.compile(
    r"<[a-z][a-z0-9 _.-]{1,60}>|\byour[-_ ][a-z]|(?:^|/)path/to/|x{4,}\b|\breplace[-_ ]?me\b|\bchange[-_ ]?me\b"
    r"|\.\.\.$|\*{3,}|\b(?:user|username|login):(?:pass|password|pw)@|[-_](?:goes[-_])?here\b",
    re.IGNORECASE,
)
_SHAPES = (
    _Shape(
        re.compile(r"^(?:[^=\s]*=)?~(?:/|$)"),
        frozenset({"args", "env"}),
        'a leading "~" is passed as it is here: only a shell replaces it',
        "write ${HOME} instead of ~, or the absolute path",
    ),
    _Shape(
        re.compile(r"^(?:[^=$\s]*=)?\$[A-Za-z_][A-Za-z0-9_]*(?:[/:]|$)"),
        _EVERYWHERE,
        'a "$" without braces is passed as it is: only a shell replaces it',
        "write ${NAME}",
    ),
    _Shape(
        re.compile(r"%[A-Za-z_][A-Za-z0-9_]{1,60}%"),
        _EVERYWHERE,
        "%NAME% is how Windows writes a variable, and is passed as it is here",
        "write ${NAME}, for example ${HOME} for %USERPROFILE%",
    ),
    _Shape(
        re.compile(r"^(?:[^=\s]*=)?(?:file:///)?[A-Za-z]:[\\/](?!/)"),
        frozenset({"command", "args", "env", "cwd"}),
        "this is a path of Windows",
        "write the path that the file has on this machine",
    ),
    _Shape(
        _PLACEHOLDER,
        _EVERYWHERE,
        "this looks like a placeholder of an example",
        "put the real value there, or ${NAME} and set NAME in the environment of the daemon",
    ),
)


def remarks(own: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield what is to be said of an entry as the file has it, its keys under our names, nothing expanded yet."""
    for below, text in _texts(own):
        shape = next((shape for shape in _SHAPES if below[0] in shape.places and shape.pattern.search(text)), None)
        if shape is not None:
            yield below, shape.message, shape.hint
    args = tuple(own.get("args", ()))
    yield from _of_command(own.get("command") or "", args)


def unused_remarks(members: Mapping[str, Any], client: ClientProgram | None) -> Iterator[Remark]:
    """Yield the keys of clients that ask for something which does not happen here, with what does the same."""
    for name, value in members.items():
        inner = value if isinstance(value, dict) else {}
        for below in ((name,), *((name, each) for each in inner)):
            key = meaning_of(".".join(below), client)
            if key is not None and key.meaning == "unused" and value is not None:
                yield below, f"not used here: {key.why[0].lower()}{key.why[1:]}".rstrip("."), ""


def placeholders(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of those values that are an example's, not anybody's."""
    short = ((name, value) for name, value in values.items() if len(value) <= _MAX_LOOKED_AT_CHARS)
    return tuple(name for name, value in short if _PLACEHOLDER.search(value))


def _texts(own: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    texts: list[tuple[KeyPath, str]] = [((key,), own.get(key) or "") for key in ("command", "cwd", "url")]
    texts += ((("args", at), text) for at, text in enumerate(own.get("args", ())))
    texts += (((key, name), text) for key in ("env", "headers") for name, text in own.get(key, {}).items())
    return ((below, text) for below, text in texts if 0 < len(text) <= _MAX_LOOKED_AT_CHARS)


def _of_command(command: str, args: Sequence[str]) -> Iterator[Remark]:
    program = PurePath(command).name
    packages = [text for text in args if not text.startswith("-")][:1]
    if program in _RUNNERS and packages and _unpinned(packages[0]):
        yield ("args",), "the package has no fixed version: each start may run other code", "name@1.2.3 pins it"
    if program.lower() in ("cmd", "cmd.exe") or program.lower().endswith((".cmd", ".bat", ".ps1")):
        yield ("command",), "this is how Windows starts a program", 'write the program itself, such as "npx"'


def _unpinned(package: str) -> bool:
    """Return whether a package argument of a runner names no version. `@scope/name@1.2.3` names one."""
    version = package[1:].rpartition("@")[2] if "@" in package[1:] else ""
    return version in ("", "latest") and "==" not in package


def lines(notes: Iterable[ConfigError]) -> list[str]:
    """Return notes as lines for people: what is said of several places is said once, with those and their lines."""
    groups: dict[tuple[str, str], list[ConfigError]] = {}
    for note in notes:
        groups.setdefault((note.message, note.hint), []).append(note)
    return [str(group[0]) if len(group) == 1 else _together(group) for group in groups.values()]


def _together(group: Sequence[ConfigError]) -> str:
    first = group[0]
    named = _some(list(dict.fromkeys(note.server or note.key for note in group)))
    places = "lines " + _some(list(dict.fromkeys(str(note.line) for note in group)))
    return f"{first.path}: {named}: {first.message} ({first.hint + '; ' if first.hint else ''}{places})"


def _some(words: Sequence[str]) -> str:
    more = len(words) - _MOST_NAMED
    return ", ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def unknown_key(key: str) -> tuple[tuple[str, ...], str]:
    """Return which key of an entry an unknown one is probably a slip of, if any, and what to do about it."""
    likely = nearest(key, [*keys_of(ServerConfig), *FOREIGN])
    if likely:
        return (likely,), f'did you mean "{likely}"?'
    if key in keys_of(Settings):
        return (), 'it belongs into the top-level "supervisor" object'
    return (), "remove it; mcpvisor explain SERVER shows the keys of an entry"
