"""One server as a client writes it, as an entry of ours. Pure.

Rules of this file:
- Nothing is lost in silence: a key that has no meaning here is named, and so is a value that only the client can know.
- Keys that the configuration reads anyway (`supervisor/config/syntax/keys.py`) go over as they are, approvals such as
  `alwaysAllow` included; lists of tools that are shown or hidden become our `tools`, and times get our unit.
- Logins do not go over: tokens belong to whoever got them, and most servers need no setting for a new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

import msgspec

from supervisor.clients.client import ClientProgram
from supervisor.clients.variables import translate_references
from supervisor.config.entries.entry import ServerConfig
from supervisor.config.syntax.keys import FOREIGN, is_comment
from supervisor.config.syntax.units import KINDS
from supervisor.config.syntax.values import keys_of

SPELLINGS: Final = {
    "cmd": "command",
    "working_directory": "cwd",
    "environment": "env",
    "envs": "env",
    "serverUrl": "url",
    "httpUrl": "url",
    "uri": "url",
    "http_headers": "headers",
}
"""What is called otherwise there."""
_TYPES: Final = ("type", "transport", "transportType")
_TIMES: Final = {
    "timeoutMs": ("call_timeout_s", 0.001),
    "tool_timeout_sec": ("call_timeout_s", 1.0),
    "startup_timeout_sec": ("start_timeout_s", 1.0),
    "startup_timeout_ms": ("start_timeout_s", 0.001),
}
"""Times with a unit in their name: our key, and that unit in seconds."""
_LONGEST: Final = 1e12
"""Of a time in any unit; a whole number of TOML or JSON may be one that no float holds."""
_TOOLS: Final = {
    **dict.fromkeys(("includeTools", "enabledTools", "enabled_tools", "available_tools", "tools"), "allow"),
    **dict.fromkeys(("excludeTools", "disabledTools", "disabled_tools"), "deny"),
}
_STAYS: Final = frozenset({*keys_of(ServerConfig), *FOREIGN}) - {"oauth", "timeout", "enabled", *_TYPES, *_TOOLS}
_VALUES: Final = ("command", "args", "env", "cwd", "url", "headers", "envFile")
"""Where references to the environment may stand."""


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

    def add(self, key: str, value: Any) -> None:
        own = SPELLINGS.get(key, key)
        if own in _VALUES:
            self._own[own] = self._place(own, self._translate(value))
            if key == "httpUrl":
                self._own.setdefault("type", "http")
        elif key in _TYPES:
            self._type(key, value)
        elif key == "timeout" or key in _TIMES:
            target, unit_s = _TIMES.get(key, ("call_timeout_s", self._client.timeout_unit_s))
            self._time(key, value, target, unit_s)
        elif key == "enabled" and isinstance(value, bool):
            if not value:
                self._own["disabled"] = True
        elif key in _TOOLS:
            self._tools(key, value)
        elif key in _STAYS or is_comment(key):
            self._own[own] = value
        elif not self._codex(key, value):
            self.left_out.append(key)

    def finish(self) -> dict[str, Any]:
        own = self._own
        for key, more in (("headers", self._headers), ("env", self._env)):
            if more and isinstance(own.get(key, {}), dict):
                own[key] = {**own.get(key, {}), **more}
        if own.get("url") and "type" not in own and self._client.bare_url:
            own["type"] = self._client.bare_url
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
        """Return a path that a project's file has relative to the project as an absolute one."""
        is_path = key in ("cwd", "envFile") or (key == "command" and str(value).startswith("."))
        if not is_path or not isinstance(value, str) or value.startswith(("/", "~", "$")):
            return value
        if self._folder is None:
            self.notes.append(f"{key} is relative to where the client runs: write an absolute path")
            return value
        return str(PurePosixPath(self._folder, value))

    def _type(self, key: str, value: Any) -> None:
        kind = "http" if value == "remote" else KINDS.get(value) if isinstance(value, str) else None
        if kind is None:
            self.left_out.append(key)
        elif kind != "stdio":  # a program is known by its command
            self._own["type"] = "ws" if kind == "websocket" else kind

    def _time(self, key: str, value: Any, target: str, unit_s: float) -> None:
        if type(value) not in (int, float) or not 0 < value <= _LONGEST:
            self.left_out.append(key)
            return
        seconds = round(value * unit_s, 3)
        self._own[target] = int(seconds) if seconds == int(seconds) else seconds

    def _tools(self, key: str, value: Any) -> None:
        if key == "tools" and isinstance(value, dict):  # ours, or Codex's settings of single tools
            if value.keys() <= {"allow", "deny", "rename", "describe"}:
                self._own["tools"] = value
            else:
                self.left_out.append(key)
        elif not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self.left_out.append(key)
        elif value and not (_TOOLS[key] == "allow" and "*" in value):
            self._own.setdefault("tools", {})[_TOOLS[key]] = value

    def _codex(self, key: str, value: Any) -> bool:
        """Take what Codex writes for references to the environment; return whether it was such a key."""
        match key, value:
            case "bearer_token_env_var", str(name):
                self._headers["Authorization"] = f"Bearer ${{{name}}}"
            case "env_http_headers", dict(names):
                self._headers |= {header: f"${{{name}}}" for header, name in names.items()}
            case "env_vars", list(names) if all(isinstance(name, str) for name in names):
                self._env |= {name: f"${{{name}}}" for name in names}
            case _:
                return False
        return True
