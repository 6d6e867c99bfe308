"""What is known of a client: where it keeps its servers, how it writes one, how it treats tools. Pure.

The machine is an argument, and the clients are in `client_table`. A fact is there only if the client's own
documentation or source says it, or if the client was seen to do it. None is a state of its own: nothing says it.
Whoever decides by facts takes what does least harm then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")

Searching = Literal["always", "many", "never"]
"""When a client keeps the definitions of tools from its model and searches them itself."""
SideBySide = Literal["all", "read-only", "none"]
"""Which calls of one turn a client runs at the same time; `read-only`: those of tools with `readOnlyHint`."""
Above = Literal["left out", "warned of", "grouped"]
"""What becomes of tools above a limit."""


class Fact(msgspec.Struct, Generic[T], frozen=True):
    """A fact, and where it is from: an address, or the version that was seen to do it."""

    value: T
    source: str


class Limit(msgspec.Struct, frozen=True):
    """How many tools a client bears at once, and what becomes of more."""

    tools: int
    above: Above


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one client; None where nothing says it."""

    searches: Fact[Searching] | None = None
    heeds_hint: Fact[bool] | None = None
    """Whether it keeps a tool loaded that has `anthropic/alwaysLoad` in its `_meta`."""
    keeps_loaded: Fact[Mapping[str, Any]] | None = None
    """What in its own entry of a server keeps the tools of that server loaded."""
    side_by_side: Fact[SideBySide] | None = None
    heeds_changes: Fact[bool] | None = None
    """Whether it reads the list again after `notifications/tools/list_changed`."""
    limit: Fact[Limit] | None = None


def value_of(fact: Fact[T] | None) -> T | None:
    """Return what is known, None if nothing is."""
    return None if fact is None else fact.value


Meaning = Literal["ours", "renamed", "time", "enabled", "allow", "deny", "approve", "variable", "unused", "label"]
"""What a key is here.

`ours`: our key of that name. `renamed`: our key `to`. `time`: our key `to`, from another unit. `enabled`: the opposite
of `disabled`. `allow`, `deny`: of `tools`. `approve`: added to `confirm_except`. `variable`: names variables that `to`
gets its values from. `unused`: without effect, which is noted. `label`: without effect, and nobody misses one.
"""


class ClientKey(msgspec.Struct, frozen=True):
    """One key. A dot leads into an object: `oauth.clientId`. `unit_s`: the unit of a time, in seconds."""

    name: str
    meaning: Meaning = "ours"
    to: str = ""
    unit_s: float = 1.0
    why: str = ""
    """What is lost, or what does the same here; of `unused` and `label`."""


MS: Final = 0.001


def ours(*names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name) for name in names)


def unused(why: str, *names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, "unused", why=why) for name in names)


def label(why: str, *names: str) -> tuple[ClientKey, ...]:
    return tuple(ClientKey(name, "label", why=why) for name in names)


def timeout(unit_s: float, name: str = "timeout", to: str = "call_timeout_s") -> ClientKey:
    return ClientKey(name, "time", to, unit_s)


def logins(*names: str) -> tuple[ClientKey, ...]:
    """Return the keys of `oauth` that are ours in another spelling."""
    return tuple(ClientKey(f"oauth.{name}", "renamed", _LOGINS[name]) for name in names)


_LOGINS: Final = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "redirectUri": "redirect_uri",
    "scopes": "scope",
}
PROGRAM: Final = ours("command", "args", "env")
REMOTE: Final = ours("url", "headers")
TYPE: Final = ours("type")
USUAL: Final = (*PROGRAM, *REMOTE, *TYPE)


URL = "URL"
"""Stands for our address in `ClientProgram.remote`."""

Format = Literal["json", "toml"]
Variables = Literal["", "${env:X}", "${X}", "$X", "{env:X}"]
"""How values refer to the environment; empty: they do not, and such a text is meant as it is."""

_VARIABLE = re.compile(r"\$([A-Z_]+)")


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What decides where files are: `platform` as in `sys.platform`, the environment, the user's home, absolute."""

    platform: str
    environ: Mapping[str, str]
    home: str

    def resolve(self, template: str) -> str | None:
        """Return the path that a template means here, None if it means none: a variable is not set, or another system.

        `~` is the home, `$X` a variable, and of folders with a name of their own `CONFIG` is where programs of the
        terminal have their settings (XDG base directory specification), `SUPPORT` where those with windows do.
        """
        windows, mac = self.platform == "win32", self.platform == "darwin"
        roaming = self.environ.get("APPDATA", f"{self.home}/AppData/Roaming")
        local = self.environ.get("LOCALAPPDATA", f"{self.home}/AppData/Local")
        config = self.environ.get("XDG_CONFIG_HOME", "")
        config = config if config.startswith("/") else f"{self.home}/.config"
        folders = {
            "~": self.home,
            "CONFIG": config,
            "SUPPORT": roaming if windows else f"{self.home}/Library/Application Support" if mac else config,
            "ROAMING": roaming if windows else None,
            "LOCAL": local if windows else None,
            "MAC": self.home if mac else None,
            "UNIX": None if windows else self.home,
        }
        first, slash, rest = template.partition("/")
        variable = _VARIABLE.fullmatch(first)
        folder = self.environ.get(variable[1]) or None if variable else folders[first]
        return None if folder is None else folder + slash + rest


class ClientProgram(msgspec.Struct, frozen=True, kw_only=True):
    """One client, a row of the table. Paths are templates for `Machine.resolve`, in the order in which it looks."""

    name: str
    title: str
    signs: tuple[str, ...]
    """Folders and programs, any of which says that it is installed."""
    files: tuple[str, ...]
    """Its file of the user: the first that is there, else the last; one that a variable names is the only one."""
    project: tuple[str, ...] = ()
    """Its files in the folder of a project."""
    format: Format = "json"
    servers: tuple[str, ...] = ("mcpServers",)
    """The keys that lead to its servers."""
    local_scope: bool = False
    """Whether `projects.FOLDER` of the user file has servers for one folder."""
    remote: Mapping[str, str | tuple[str, ...]] | None
    """How it writes a server at `URL`, spoken to by Streamable HTTP; None if it only starts programs."""
    bare_url: Literal["", "sse"] = ""
    """What an address without a type means; empty: it finds out, as we do."""
    variables: Variables = ""
    command: str = ""
    """How its own command adds us, with `{name}` and `{url}`."""
    rewrites: bool = False
    """Whether it writes its file itself while it runs, so that a change may be lost."""
    applied: str = "Restart it."
    """When a change of its file is in force, or what that takes."""
    then: str = ""
    """What else it needs until it has us."""
    rules: str = ""
    """What its rules call a tool; those of servers that move here match nothing any more."""
    facts: Facts = Facts()
    """How it treats the tools of a server; by that `connect` chooses a door."""
    source: str
    """Where its own page says which keys it has."""
    keys: tuple[ClientKey, ...]

    def places(self, machine: Machine) -> list[str]:
        """Return where its user file may be, at least one path on a system that it runs on."""
        paths = [(template, machine.resolve(template)) for template in self.files]
        named = [path for template, path in paths if path is not None and template.startswith("$")]
        return named[:1] or [path for _, path in paths if path is not None]

    def folders(self, machine: Machine) -> Iterator[str]:
        """Yield its own folders."""
        for sign in self.signs:
            if "/" in sign and (path := machine.resolve(sign)) is not None:
                yield path

    def find(self, name: str) -> ClientKey | None:
        return next((key for key in self.keys if key.name == name), None)

    @property
    def afterwards(self) -> str:
        """Return what it needs until it has us."""
        return f"{self.applied} {self.then}".rstrip()

    @property
    def programs(self) -> list[str]:
        return [sign for sign in self.signs if "/" not in sign]
