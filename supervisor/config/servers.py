"""Read one entry of `mcpServers`: check it, expand it, and make it a `ServerConfig`.

Rules of this file:
- Order: unknown keys, other programs' spellings, types, transport, expansion, limits of the operating system. Every
  fault of a step is recorded, not only the first; the later steps need the earlier ones to be passed.
- An entry with a fault gives no server; its neighbours stay.
- An entry that is disabled is not expanded: variables of a server that never starts need not be set.
- Values never appear in messages; `Findings` only takes keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

import msgspec

from actors.errors import ConfigError
from supervisor.config.entry import ServerConfig
from supervisor.config.expand import expand, expand_home, is_env_name, parse_env_file
from supervisor.config.jsonc import KeyPath
from supervisor.config.keys import FOREIGN, is_comment, is_header_name, name_fault, nearest, suggest_name, translate
from supervisor.config.remarks import Remark, remarks
from supervisor.config.structs import Settings
from supervisor.config.units import Kind
from supervisor.config.values import Findings, build, keys_of

MAX_STRING_BYTES = 131_071
"""Linux's limit of one argument or one `NAME=value` (MAX_ARG_STRLEN, less the terminating zero)."""

MAX_LAUNCH_BYTES = 1024 * 1024
"""Arguments and `env` of one server together; Linux takes 2 MiB with the usual stack limit."""

KINDS: Mapping[str, Kind] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
    "ws": "websocket",
    "websocket": "websocket",
}
"""The words for transports in the wild."""

_SCHEMES: Mapping[Kind, tuple[str, ...]] = {
    "http": ("http", "https"),
    "sse": ("http", "https"),
    "websocket": ("ws", "wss"),
}


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What entries are read against. `directory` is that of the configuration file.

    `shared` are the variables of all servers, `passed` the names of those that come from our own environment. `missing`
    looks for what an entry starts, given its keys, expanded, and remarks on what is not there.
    """

    findings: Findings
    environ: Mapping[str, str]
    directory: PurePath
    read_file: Callable[[PurePath], str]
    shared: Mapping[str, str] = {}
    passed: tuple[str, ...] = ()
    missing: Callable[[Mapping[str, Any]], Iterable[Remark]] = lambda own: ()


def read_server(name: str, members: object, where: KeyPath, around: Surroundings) -> ServerConfig | None:
    """Return the server of one entry, or None after recording its problems."""
    return _Entry(name, members, where, around).read()


class _Entry:
    """One entry on its way to a `ServerConfig`. `_own` holds our keys, `_spelled` how the file names them."""

    def __init__(self, name: str, members: object, where: KeyPath, around: Surroundings) -> None:
        self._name = name
        self._members = members
        self._where = where
        self._around = around
        self._own: dict[str, Any] = {}
        self._spelled: dict[str, str] = {}
        self._kind: Kind = "stdio"
        self._remarks: tuple[Remark, ...] = ()
        self._failed = False

    def read(self) -> ServerConfig | None:
        if fault := name_fault(self._name):
            self._problem((), fault, f'rename it, for example to "{suggest_name(self._name)}"')
        if not isinstance(self._members, dict):
            self._problem((), "must be an object", 'write {"command": ..., "args": [...]}')
            return None
        missing = self._unknown(self._members)
        self._own, self._spelled = translate(self._members, keys_of(ServerConfig).keys() - {"name"})
        if self._types():
            self._remarks = tuple(remarks(self._own))
            self._transport(self._members, missing)
        for step in (self._expand, self._environment, self._limits, self._address):
            if not self._failed:
                step()
        if self._failed:
            return None
        self._remark()
        return self._build()

    def _problem(self, below: KeyPath, message: str, hint: str = "") -> None:
        self._failed = True
        self._around.findings.problem((*self._where, *below), message, hint, self._name)

    def _note(self, below: KeyPath, message: str, hint: str = "") -> None:
        self._around.findings.note((*self._where, *below), message, hint, self._name)

    def _at(self, key: str) -> str:
        return self._spelled.get(key, key)

    def _unknown(self, members: Mapping[str, Any]) -> set[str]:
        """Record unknown keys; return the keys that they are probably slips of."""
        ours = keys_of(ServerConfig)
        meant: set[str] = set()
        for key in members:
            if key in ours or key in FOREIGN or is_comment(key):
                continue
            likely = nearest(key, [*ours, *FOREIGN])
            if likely:
                meant.add(likely)
                hint = f'did you mean "{likely}"?'
            elif key in keys_of(Settings):
                hint = 'it belongs into the top-level "supervisor" object'
            else:
                hint = "remove it, or see docs/configuration.md for the keys"
            self._problem((key,), "unknown key", hint)
        return meant

    def _types(self) -> bool:
        """Check every value's type; return whether all are right."""
        right = self._around.findings.check(
            self._own, keys_of(ServerConfig), self._where, server=self._name, spelled=self._spelled
        )
        env_file = self._members.get("envFile") if isinstance(self._members, dict) else None
        if env_file is not None and not isinstance(env_file, str):
            self._problem(("envFile",), "must be a string")
            right = False
        slug = self._own.get("slug")
        if isinstance(slug, str) and (fault := name_fault(slug)):
            self._problem(("slug",), fault, f'for example "{suggest_name(slug)}"')
        self._failed = self._failed or not right
        return right

    def _transport(self, members: Mapping[str, Any], meant: set[str]) -> None:
        """Decide how the server is reached. `meant`: keys that are probably there, but misspelt."""
        command, url = bool(self._own.get("command")), bool(self._own.get("url"))
        if command and url:
            self._problem((self._at("url"),), 'an entry has either "command" or "url"', "remove one of them")
        elif not command and not url and not meant & {"command", "url", "serverUrl", "httpUrl"}:
            below = ("command",) if "command" in members else ()
            self._problem(below, 'an entry needs a "command" or a "url"', "write the program to start, or the address")
        written = next((key for key in ("type", "transport", "transportType") if key in members), None)
        if written is None:
            remote: Kind = "websocket" if str(self._own.get("url")).startswith(("ws:", "wss:")) else "http"
            self._kind = remote if url else "stdio"
            return
        word = members[written]
        kind = KINDS.get(word) if isinstance(word, str) else None
        if kind is None:
            self._problem((written,), "must be one of " + ", ".join(f'"{each}"' for each in KINDS))
            return
        self._kind = kind
        if (kind == "stdio" and url) or (kind != "stdio" and command):
            wanted = '"command"' if kind == "stdio" else '"url"'
            self._problem((written,), f"a server of this type has a {wanted}", "correct the type, or leave it out")

    def _expanded(self, below: KeyPath, text: str) -> str:
        try:
            return expand(text, self._around.environ)
        except ConfigError as error:
            self._problem(below, error.message, error.hint)
            return text

    def _expand(self) -> None:
        if self._own.get("disabled"):
            return
        own = self._own
        for key in ("command", "cwd", "url"):
            if own.get(key):
                own[key] = self._expanded((self._at(key),), own[key])
        own["args"] = [self._expanded(("args", at), text) for at, text in enumerate(own.get("args", ()))]
        for key in ("env", "headers"):
            own[key] = {name: self._expanded((key, name), text) for name, text in own.get(key, {}).items()}
        for key in ("command", "cwd"):
            if own.get(key):
                own[key] = self._home((key,), own[key])
        if own.get("cwd"):
            own["cwd"] = str(self._around.directory / own["cwd"])

    def _home(self, below: KeyPath, text: str) -> str:
        try:
            return expand_home(text, self._around.environ)
        except ConfigError as error:
            self._problem(below, error.message, error.hint)
            return text

    def _environment(self) -> None:
        """Put the variables of all servers below those of `envFile`, and these below those of `env`."""
        if self._own.get("disabled"):
            return
        self._env_file()
        own = self._own.get("env", {})
        if self._kind == "stdio":
            self._own["env"] = {**self._around.shared, **own}
            self._own["passed"] = [name for name in self._around.passed if name not in own]

    def _env_file(self) -> None:
        """Put the variables of `envFile` below those of `env`."""
        name = self._members.get("envFile") if isinstance(self._members, dict) else None
        if not name:
            return
        expanded = self._home(("envFile",), self._expanded(("envFile",), name))
        if self._failed:
            return
        if "\0" in expanded:
            self._problem(("envFile",), "holds a NUL character", "remove it")
            return
        path = self._around.directory / expanded
        try:
            variables = parse_env_file(self._around.read_file(path), str(path))
        except ConfigError as error:
            place = f" (line {error.line} of it)" if error.line else ""
            self._problem(("envFile",), f"the file cannot be used: {error.message}{place}", error.hint)
            return
        self._own["env"] = {**variables, **self._own.get("env", {})}

    def _limits(self) -> None:
        """Check what the operating system would refuse at every start (execve(2))."""
        env: dict[str, str] = self._own.get("env", {})
        headers: dict[str, str] = self._own.get("headers", {})
        arguments: list[tuple[KeyPath, str]] = [(("command",), self._own.get("command", ""))]
        arguments += ((("args", at), text) for at, text in enumerate(self._own.get("args", ())))
        for below, text in arguments:
            self._text(below, text, forbidden="\0\n")
        for name, text in env.items():
            if not is_env_name(name):
                self._problem(("env", name), "an environment variable cannot have this name", 'no "=", no blanks')
            self._text(("env", name), text, forbidden="\0")
        for name, text in headers.items():
            if not is_header_name(name):
                self._problem(("headers", name), "not a name of an HTTP header", "letters, digits and dashes")
            self._text(("headers", name), text, forbidden="\0\r\n")
        self._text(("cwd",), self._own.get("cwd") or "", forbidden="\0")
        size = sum(len(text) + 1 for _, text in arguments) + sum(
            len(name) + len(text) + 2 for name, text in env.items()
        )
        if size > MAX_LAUNCH_BYTES:
            self._problem((), f"arguments and environment are over {MAX_LAUNCH_BYTES} bytes", "pass a file instead")

    def _text(self, below: KeyPath, text: str, forbidden: str) -> None:
        named = {"\0": "a NUL character", "\n": "a line break", "\r": "a line break"}
        for character in forbidden:
            if character in text:
                self._problem(below, f"holds {named[character]}", "remove it; put longer texts and scripts into a file")
                return
        if len(text.encode(errors="surrogatepass")) > MAX_STRING_BYTES:
            self._problem(below, f"is longer than {MAX_STRING_BYTES} bytes", "pass a file instead")

    def _address(self) -> None:
        """Check the form of a remote server's address."""
        if self._kind == "stdio" or self._own.get("disabled"):
            return
        try:
            parts = urlsplit(self._own["url"])
            usable = parts.scheme in _SCHEMES[self._kind] and bool(parts.hostname) and parts.port != 0
            # urlsplit drops line breaks in silence; what would be sent has them.
            usable = usable and min(self._own["url"]) > " "
        except ValueError:
            usable = False
        if not usable:
            schemes = " or ".join(f"{scheme}://" for scheme in _SCHEMES[self._kind])
            self._problem((self._at("url"),), "is not an address for this type of server", f"it begins with {schemes}")

    def _remark(self) -> None:
        """Note what is allowed but perhaps not meant."""
        for key, foreign in FOREIGN.items():
            if foreign.treatment == "noted" and isinstance(self._members, dict) and key in self._members:
                self._note((key,), foreign.effect)
        if self._own.get("disabled"):
            return
        for remark in self._remarks:
            self._note((self._at(str(remark.below[0])), *remark.below[1:]), remark.message, remark.hint)
        if self._kind == "stdio":
            for remark in self._around.missing(self._own):
                self._note((self._at(str(remark.below[0])),), remark.message, remark.hint)

    def _build(self) -> ServerConfig:
        members = {key: value for key, value in self._own.items() if value is not None}
        server: ServerConfig = build(ServerConfig, {**members, "name": self._name, "kind": self._kind})
        return server
