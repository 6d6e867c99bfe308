"""Servers as a client writes them, as entries of ours: which are new, and which need another name. Pure.

Rules of this file:
- What a key means is in the row of its client (`supervisor/config/client_table.py`). Nothing is lost in silence: a key
  that has no meaning here is named.
- Approvals such as `alwaysAllow`, and labels, go over as they are, as the configuration reads them anyway; lists of
  tools that are shown or hidden become our `tools`, and times get our unit.
- Logins do not go over: tokens belong to whoever got them, and most servers need no setting for a new one.
- References to the environment get our spelling (`supervisor/config/expansion.py`). What only the client can know (an
  answer that VS Code keeps, the output of a command) becomes a variable of ours where it has a name, and is said in any
  case: nothing is evaluated here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from supervisor.clients.doors import is_own
from supervisor.config.clients import ClientKey, ClientProgram, Variables
from supervisor.config.entry import ServerConfig
from supervisor.config.keys import (
    MAX_NAME_CHARS,
    in_seconds,
    is_comment,
    meaning_of,
    name_fault,
    of_variables,
    suggest_name,
    translate_entry,
)
from supervisor.config.values import KINDS, keys_of

_LONGEST: Final = 1e12
"""Of a time in any unit; a whole number of TOML or JSON may be one that no float holds."""
_VALUES: Final = ("command", "args", "env", "cwd", "url", "headers", "envFile")
"""Where references to the environment may stand."""
_RELATIVE: Final = re.compile(r"(?:-{1,2}[\w-]+=)?\.{1,2}(?:[/\\].*)?", re.DOTALL)
"""An argument that surely is a path from where the program is started: `.`, `../x`, `--root=./x`."""
_BRACES: Final = re.compile(r"\$\{([^{}]*)\}")
_DOLLAR: Final = re.compile(r"\$(?:\{([^{}]*)\}|([A-Za-z_][A-Za-z0-9_]*)|(\())")
_CURLY: Final = re.compile(r"\$\{|\{env:([A-Za-z_][A-Za-z0-9_]*)\}|\{(file):")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9]+")

Note = Callable[[str], None]


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A server of a client as an entry of ours. `left_out` has the keys that have no meaning here."""

    entry: dict[str, Any]
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def take(members: object, client: ClientProgram, folder: str | None = None) -> Taken | str:
    """Return the entry, or why there is none. `folder`: of the project that it stands in."""
    if not isinstance(members, dict):
        return "it is not an object"
    entry = _Entry(client, folder)
    for key, value in _flat(members).items():
        entry.add(key, value)
    own = entry.finish()
    if not own.get("command") and not own.get("url"):
        return "it names neither a program nor an address"
    return Taken(entry=own, notes=tuple(dict.fromkeys(entry.notes)), left_out=tuple(entry.left_out))


def _flat(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members without the objects that Cline and older Zed keep the way to a server in."""
    flat: dict[str, Any] = {}
    for key, value in members.items():
        if key == "transport" and isinstance(value, dict):
            flat |= value
        elif key == "command" and isinstance(value, dict):
            flat |= {"command" if name == "path" else name: each for name, each in value.items()}
        elif key == "command" and isinstance(value, list):  # opencode
            flat |= {"command": value[0] if value else "", "args": value[1:]}
        else:
            flat[key] = value
    return flat


class _Entry:
    """An entry in the making."""

    def __init__(self, client: ClientProgram, folder: str | None) -> None:
        self.notes: list[str] = []
        self.left_out: list[str] = []
        self._client = client
        self._folder = folder
        self._own: dict[str, Any] = {}
        self._headers: dict[str, str] = {}
        self._env: dict[str, str] = {}

    def add(self, name: str, value: Any) -> None:
        key = meaning_of(name, self._client)
        if key is None and (name in keys_of(ServerConfig) or is_comment(name)):
            key = ClientKey(name)
        if value is None:
            return
        match key:
            case None | ClientKey(meaning="unused") | ClientKey(name="oauth"):
                self.left_out.append(name)
            case ClientKey(name="type") | ClientKey(meaning="renamed", to="type"):
                self._type(name, value)
            case ClientKey(meaning="renamed", to=own):
                self._value(own, value)
                if name == "httpUrl":
                    self._own.setdefault("type", "http")
            case ClientKey(meaning="time"):
                self._times(key, value)
            case ClientKey(meaning="enabled") if isinstance(value, bool):
                if not value:
                    self._own["disabled"] = True
            case ClientKey(meaning="allow" | "deny" as kind):
                self._tools(name, value, kind)
            case ClientKey(name="tools"):
                self._tools(name, value, "allow")
            case ClientKey(meaning="variable", to=own) if references := of_variables(name, value):
                (self._headers if own == "headers" else self._env).update(references)
            case ClientKey(meaning="ours") if name in _VALUES:
                self._value(name, value)
            case ClientKey(meaning="ours" | "label" | "approve"):
                self._own[name] = value
            case _:
                self.left_out.append(name)

    def _value(self, own: str, value: Any) -> None:
        self._own[own] = self._place(own, self._translate(value))

    def finish(self) -> dict[str, Any]:
        own = self._own
        for key, more in (("headers", self._headers), ("env", self._env)):
            if more and isinstance(own.get(key, {}), dict):
                own[key] = {**own.get(key, {}), **more}
        if own.get("url") and "type" not in own and self._client.bare_url:
            own["type"] = self._client.bare_url
        if own.get("command") and self._folder is not None:
            own.setdefault("cwd", self._folder)  # where its client starts it, whatever it reads there
        first = [key for key in ("type", "command", "args", "url", "env", "headers") if key in own]
        return {key: own[key] for key in (*first, *(key for key in own if key not in first))}

    def _translate(self, value: Any) -> Any:
        if isinstance(value, str):
            return translate_references(value, self._client.variables, self._folder, self.notes.append)
        if isinstance(value, list):
            return [self._translate(each) for each in value]
        if isinstance(value, dict):
            return {key: self._translate(each) for key, each in value.items()}
        return str(value) if type(value) in (int, float) else value

    def _place(self, key: str, value: Any) -> Any:
        """Return a path that a project's file has relative to the project as an absolute one.

        Arguments stay as they are: they are read in the project's directory.
        """
        if key == "args" and isinstance(value, list) and self._folder is None:
            for at, text in enumerate(value):
                if isinstance(text, str) and _RELATIVE.fullmatch(text):
                    self._note_relative(f"args[{at}]")
        is_path = key in ("cwd", "envFile") or (key == "command" and str(value).startswith("."))
        if not is_path or not isinstance(value, str) or value.startswith(("/", "~", "$")):
            return value
        if self._folder is None:
            self._note_relative(key)
            return value
        return str(PurePosixPath(self._folder, value))

    def _note_relative(self, key: str) -> None:
        self.notes.append(f"{key} is relative to where the client runs: write an absolute path")

    def _type(self, key: str, value: Any) -> None:
        kind = "http" if value == "remote" else KINDS.get(value) if isinstance(value, str) else None
        if kind is None:
            self.left_out.append(key)
        elif kind != "stdio":  # a program is known by its command
            self._own["type"] = "ws" if kind == "websocket" else kind

    def _times(self, key: ClientKey, value: Any) -> None:
        """Take a time, or an object of several."""
        for name, each in value.items() if isinstance(value, dict) else [("", value)]:
            part = meaning_of(f"{key.name}.{name}", self._client) if name else key
            if part is None or part.meaning != "time" or type(each) not in (int, float) or not 0 < each <= _LONGEST:
                self.left_out.append(f"{key.name}.{name}" if name else key.name)
            else:
                self._own[part.to] = in_seconds(each, part, self._client)

    def _tools(self, key: str, value: Any, kind: str) -> None:
        if isinstance(value, dict) and value.keys() <= {"allow", "deny", "rename", "describe"}:  # ours
            self._own["tools"] = value
        elif not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self.left_out.append(key)
        elif value and not (kind == "allow" and "*" in value):
            self._own.setdefault("tools", {})[kind] = value


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


_LAUNCH: Final = ("command", "args", "env", "cwd", "url", "headers")
"""What a server is; the rest is how it is treated."""


class ServerSource(msgspec.Struct, frozen=True, kw_only=True):
    """The servers at one place of a client's file. `folder`: of the project that they are for, if they are for one."""

    client: ClientProgram
    path: str
    where: tuple[str, ...]
    servers: Mapping[str, Any]
    folder: str | None = None


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one server of a client: it comes as `name`, or is there by that name, or does not come."""

    source: ServerSource
    key: str
    name: str = ""
    taken: Taken | None = None
    refusal: str = ""
    is_new: bool = False


def plan_moves(
    sources: Iterable[ServerSource], known: Mapping[str, Mapping[str, Any]], listens: Collection[str]
) -> list[Move]:
    """Return what becomes of every server but ourselves; `known` are the entries of our configuration by name."""
    launches = {_launch(entry): name for name, entry in reversed(list(known.items())) if isinstance(entry, dict)}
    names = {name.casefold() for name in known}
    moves = []
    for source in sources:
        for key, members in source.servers.items():
            if is_own(members, listens):
                continue
            taken = take(members, source.client, source.folder)
            if isinstance(taken, str):
                moves.append(Move(source=source, key=key, refusal=taken))
                continue
            launch = _launch(taken.entry)
            name = launches.get(launch, "")
            is_new = not name
            if is_new:
                name = _free_name(key, source.client.name, names)
                names.add(name.casefold())
                launches[launch] = name
            moves.append(Move(source=source, key=key, name=name, taken=taken, is_new=is_new))
    return moves


def _launch(entry: Mapping[str, Any]) -> str:
    """Return what tells a server from others."""
    own, _ = translate_entry(entry, keys_of(ServerConfig))
    return json.dumps({key: own[key] for key in _LAUNCH if own.get(key)}, sort_keys=True)


def _free_name(key: str, client: str, taken: Collection[str]) -> str:
    """Return the key of a server there as a name that nobody has here: `github`, `github-cursor`, `github-cursor-2`."""
    name = suggest_name(key) if name_fault(key) else key
    ends = ["", f"-{client}", *(f"-{client}-{number}" for number in range(2, len(taken) + 3))]
    names = (f"{name[: MAX_NAME_CHARS - len(end)]}{end}" for end in ends)
    return next(each for each in names if each.casefold() not in taken)
