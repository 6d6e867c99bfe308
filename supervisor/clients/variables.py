"""References to the environment, from the spelling of a client to ours (`supervisor/config/syntax/expand.py`). Pure.

What only the client can know (an answer that VS Code keeps, the output of a command) becomes a variable of ours where
it has a name, and is said in any case: nothing is evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from supervisor.config.clients.client import Variables

Note = Callable[[str], None]

_BRACES = re.compile(r"\$\{([^{}]*)\}")
_DOLLAR = re.compile(r"\$(?:\{([^{}]*)\}|([A-Za-z_][A-Za-z0-9_]*)|(\())")
_CURLY = re.compile(r"\$\{|\{env:([A-Za-z_][A-Za-z0-9_]*)\}|\{(file):")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")


def translate_references(text: str, spelling: Variables, folder: str | None, note: Note) -> str:
    """Return a text of an entry as we write it; `folder` is that of the project that it stands in, if it does."""
    match spelling:
        case "":
            return text.replace("${", "$${")
        case "$X":
            return _DOLLAR.sub(lambda match: _of_dollar(match, note), text)
        case "{env:X}":
            return _CURLY.sub(lambda match: _of_curly(match, note), text)
    return _BRACES.sub(lambda match: _of_braces(match, folder, note), text)


def _of_braces(match: re.Match[str], folder: str | None, note: Note) -> str:
    kind, colon, rest = match[1].partition(":")
    if kind == "env" and colon:
        return f"${{{rest}}}"
    if kind == "input" and colon:
        name = _NOT_IN_NAMES.sub("_", rest).strip("_").upper() or "INPUT"
        note(f"the answer to its question {rest!r} cannot be read: set {name} in the environment of the daemon")
        return f"${{{name}}}"
    if kind == "workspaceFolder" and folder is not None:
        return folder
    return match[0]


def _of_dollar(match: re.Match[str], note: Note) -> str:
    if match[3]:
        note("$(...) is the output of a command there, and is passed as it is here: write the value, or ${NAME}")
    return f"${{{match[2]}}}" if match[2] else match[0]


def _of_curly(match: re.Match[str], note: Note) -> str:
    if match[2]:
        note("{file:...} is what a file holds there, and is passed as it is here: write ${NAME} and set NAME")
    if match[1]:
        return f"${{{match[1]}}}"
    return "$${" if match[0] == "${" else match[0]
