"""Read one entry of `mcpServers`: check it, expand it, and make it a `ServerConfig`.

Rules of this file:
- Order: unknown keys, other programs' spellings, types, transport, expansion, limits of the operating system. Every
  fault of a step is recorded, not only the first; the later steps need the earlier ones to be passed.
- An entry with a fault gives no server; its neighbours stay. One that leads to the daemon itself belongs into the file
  of a client.
- An entry that is disabled is not expanded: variables of a server that never starts need not be set.
- Other programs name single tools; the names are taken for patterns, as ours are: what they match is themselves.
- Values never appear in messages; `Findings` only takes keys.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any, Final

import msgspec

from actors.catalogue.offer import MAX_DESCRIPTION
from actors.catalogue.tool_rules import ToolRules
from actors.catalogue.tool_rules import name_fault as name_fault_of_tool
from actors.command_line import command
from actors.errors import ConfigError
from supervisor.config.address import leads_to
from supervisor.config.clients import ClientProgram
from supervisor.config.entry import (
    SANDBOX,
    OAuthConfig,
    ServerConfig,
    check,
    check_sandbox,
    read_sandbox,
    root_uri,
    translate_oauth,
)
from supervisor.config.expansion import (
    Lookups,
    Origin,
    TieredText,
    UnsetVariable,
    ValueLayer,
    expand,
    expand_home,
    fill_in,
    overlay,
    parse_env_file,
    split,
)
from supervisor.config.jsonc import KeyPath
from supervisor.config.keys import (
    hint_of,
    is_comment,
    meaning_of,
    name_fault,
    names_with,
    suggest_name,
    translate_entry,
)
from supervisor.config.remarks import remarks, unknown_key, unused_remarks
from supervisor.config.value_rules import VALUES, place_faults, read_values, value_remarks
from supervisor.config.values import (
    KINDS,
    SCHEMES,
    Findings,
    Kind,
    Remark,
    build,
    is_address,
    keys_of,
    launch_faults,
    type_faults,
)


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What entries are read against. `directory` is that of the configuration file.

    `shared` are the variables of all local servers, `defaults` keys of entries that do not set them. `missing` looks
    for what an entry starts, given its keys, expanded, and remarks on what is not there. `listen` is the address of
    the daemon itself. `client`: whose file this is, if it is one's.
    """

    findings: Findings
    environ: Mapping[str, str]
    directory: PurePath
    read_file: Callable[[PurePath], str]
    shared: ValueLayer
    defaults: ValueLayer
    missing: Callable[[Mapping[str, Any]], Iterable[Remark]]
    listen: str
    client: ClientProgram | None = None


_BRIDGE: Final = re.compile(r"""(?:(?:^|[\s/"'])mcpvisor(?:@\S+)?|\s-m\s+supervisor)["']?\s+stdio\b""")
"""In the words of a command, whatever starts it: a shell, uvx, pipx, Python."""


def faults_of_itself(own: Mapping[str, Any], listen: str) -> Iterator[Remark]:
    """Yield what of an entry, expanded, leads to the daemon that listens at `listen`: key, message, hint."""
    ways = list(_ways(own, listen))
    for below in ways:
        what = f"this is the address of this daemon itself ({listen})"
        yield below, what, "remove the entry; it belongs into the file of a client only"
    if not ways and _is_bridge(own, listen):
        what = "`mcpvisor stdio` would be a client of this daemon itself"
        yield ("command",), what, "remove the entry, or say which other daemon is meant: --url URL"


def _ways(own: Mapping[str, Any], listen: str) -> Iterator[KeyPath]:
    """Yield which keys lead there: the address of the entry, or one that a bridge of others is started with."""
    if own.get("url") and leads_to(own["url"], listen, doors_only=False):
        yield ("url",)
    for at, text in enumerate(own.get("args", ())):
        if leads_to(text, listen, doors_only=True):
            yield ("args", at)


def _is_bridge(own: Mapping[str, Any], listen: str) -> bool:
    """Say whether `mcpvisor stdio` is started as a client of us.

    Without `--url` it is: who else is meant, nobody can say before it runs.
    """
    words = [str(own.get("command", "")), *map(str, own.get("args", ()))]
    if _BRIDGE.search(" ".join(words)) is None:
        return False
    given = [word.removeprefix("--url=") for word in words if word.startswith("--url=")]
    given += [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--url"]
    given += [own["env"]["MCPVISOR_URL"]] if "MCPVISOR_URL" in own.get("env", {}) else []
    urls = (url if "://" in url else f"http://{url}" for url in given[:1])
    return not given or any(leads_to(url, listen, doors_only=False) for url in urls)


def _instance_faults(own: Mapping[str, Any], kind: Kind) -> Iterator[Remark]:
    """Yield what is wrong with the keys of an entry, whose texts are expanded."""
    replicas = own.get("replicas", ())
    if kind == "stdio":
        if replicas:
            yield ("replicas",), "are addresses, and this server is a process", 'write "instances"'
        return
    if own.get("instances", 1) != 1:
        yield ("instances",), "are processes, and this server has an address", 'write "replicas"'
    known = [own.get("url")]
    for number, address in enumerate(replicas):
        if not is_address(address, kind):
            schemes = " or ".join(f"{scheme}://" for scheme in SCHEMES[kind])
            yield ("replicas", number), "is not an address for this type of server", f"it begins with {schemes}"
        elif address in known:
            yield ("replicas", number), "is there twice", "remove one of them"
        known.append(address)


_ALLOWED: Final = names_with("allow")
_DENIED: Final = names_with("deny")
_APPROVED: Final = names_with("approve")
"""Keys of other programs, all of which have lists of names."""

Problem = Callable[[KeyPath, str, str], None]
"""Records a fault: the key from the entry inwards, what is wrong, and what to do."""


def _read_tools(members: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return the members of `tools` for an entry as the file has it, without what was recorded as a problem.

    A list, as GitHub Copilot writes it, is what is allowed. Our own `allow` goes over that of others; what is denied
    anywhere is denied.
    """
    written = {} if members.get("tools") is None else members["tools"]
    is_list = isinstance(written, list)
    own = {"allow": written} if is_list else {key: value for key, value in written.items() if not is_comment(key)}
    keys = keys_of(ToolRules)
    for key in own.keys() - keys.keys():
        problem(("tools", key), "unknown key", hint_of(key, keys))
    for below, message, hint in type_faults(own, keys):
        problem(("tools", *(below[1:] if is_list else below)), message, hint)
    for name, text in own.get("describe", {}).items() if isinstance(own.get("describe"), dict) else ():
        if isinstance(text, str) and len(text) > MAX_DESCRIPTION:
            problem(("tools", "describe", name), f"is longer than {MAX_DESCRIPTION} characters", "shorten it")
    allowed, denied = _read_names(members, _ALLOWED, problem), _read_names(members, _DENIED, problem)
    if allowed is not None:
        own.setdefault("allow", allowed)
    if denied is not None:
        own["deny"] = [*own.get("deny", ()), *denied]
    return own


def _places_of(members: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, KeyPath]:
    """Return where each member that `_read_tools` returned is written; of several places, that which is ours."""
    written = members.get("tools")
    whole: tuple[str, ...] = ("allow",) if isinstance(written, list) else ()
    ours: dict[str, KeyPath] = {key: ("tools", key) for key in written or ()} if not whole else {"allow": ("tools",)}
    theirs = {"allow": _ALLOWED, "deny": _DENIED}
    return {key: ours.get(key) or (next(name for name in theirs[key] if name in members),) for key in own}


def _read_names(members: Mapping[str, Any], names: tuple[str, ...], problem: Problem) -> list[str] | None:
    """Return what stands in the lists of these names, None if there is none of them."""
    given = {name: value for name, value in members.items() if name in names and value is not None}
    deny = keys_of(ToolRules)["deny"]
    faults = list(type_faults(given, dict.fromkeys(given, deny)))
    for fault in faults:
        problem(*fault)
    return None if faults or not given else [each for listed in given.values() for each in listed]


def _rename_remarks(own: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield which renames of `tools` without a fault can never be done."""
    renames: Mapping[str, str] = own.get("rename", {})
    counts = Counter(renames.values())
    for old, new in renames.items():
        fault = name_fault_of_tool(new) or ("another tool is to be called so, too" if counts[new] > 1 else "")
        if fault:
            yield ("tools", "rename", old), f"the tool keeps its name: {fault}", ""


_TYPES: Final = ("type", *names_with("renamed", "type"))


def read_server(name: str, members: object, where: KeyPath, around: Surroundings) -> ServerConfig | None:
    """Return the server of one entry, or None after recording its problems."""
    return _Entry(name, members, where, around).read()


class _Entry:
    """One entry on its way to a `ServerConfig`. `_own` holds our keys, `_spelled` how the file names them."""

    def __init__(self, name: str, members: Any, where: KeyPath, around: Surroundings) -> None:
        self._name = name
        self._members = members
        self._where = where
        self._around = around
        self._own: dict[str, Any] = {}
        self._spelled: dict[str, str] = {}
        self._tiered: list[TieredText] = []
        self._kind: Kind = "stdio"
        self._failed = False

    def read(self) -> ServerConfig | None:
        if fault := name_fault(self._name):
            self._problem((), fault, f'rename it, for example to "{suggest_name(self._name)}"')
        if not isinstance(self._members, dict):
            self._problem((), "must be an object", 'write {"command": ..., "args": [...]}')
            return None
        meant = self._refuse_unknown()
        written, self._spelled = translate_entry(self._members, keys_of(ServerConfig), self._around.client)
        in_file = ValueLayer(written, {key: self._around.findings.origin(self._at((key,))) for key in written})
        self._own = self._lay((), self._around.defaults, in_file)
        as_written: tuple[Remark, ...] = ()
        if self._types():
            as_written = tuple(remarks(self._own))
            self._transport(meant)
        first, last = (self._values, self._limits), (self._logins, self._tools, self._sandbox)
        steps = (self._expand, self._environment, *first, self._address, *last) if self._enabled else (*first, *last)
        for step in steps:
            if not self._failed:
                step()
        if self._failed:
            return None
        self._remark(as_written)
        members = {key: value for key, value in self._own.items() if value is not None}
        derived = {"name": self._name, "kind": self._kind, "tiered": self._tiered}
        server: ServerConfig = build(ServerConfig, {**members, **derived})
        return server

    @property
    def _enabled(self) -> bool:
        return not self._own.get("disabled")

    def _at(self, below: KeyPath) -> KeyPath:
        """Return the place in the file of what stands `below` the entry under our keys."""
        return (*self._where, *(self._spelled.get(str(key), key) for key in below[:1]), *below[1:])

    def _note_origin(self, below: KeyPath, origin: Origin) -> None:
        self._around.findings.origins[self._name, below] = origin

    def _lay(self, below: KeyPath, *layers: ValueLayer) -> dict[str, Any]:
        """Return the values of layers that lie over one another, and keep where each comes from."""
        together = overlay(*layers)
        for name, origin in together.origins.items():
            self._note_origin((*below, name), origin)
        return dict(together.values)

    def _problem(self, below: KeyPath, message: str, hint: str = "") -> None:
        self._failed = True
        self._around.findings.problem(self._at(below), message, hint, self._name)

    def _refuse_unknown(self) -> set[str]:
        """Record unknown keys; return the keys that they are probably slips of."""
        meant: set[str] = set()
        for key in self._members:
            if key in keys_of(ServerConfig) or meaning_of(key) is not None or is_comment(key):
                continue
            likely, hint = unknown_key(key)
            meant.update(likely)
            self._problem((key,), "unknown key", hint)
        return meant

    def _types(self) -> bool:
        """Record what is of another type than its key; return whether nothing is."""
        wrong = [*type_faults(self._own, keys_of(ServerConfig))]
        if not isinstance(self._members.get("envFile"), str | None):
            wrong.append((("envFile",), "must be a string", ""))
        for fault in wrong:
            self._problem(*fault)
        slug = self._own.get("slug")
        if isinstance(slug, str) and (unusable := name_fault(slug)):
            self._problem(("slug",), unusable, f'for example "{suggest_name(slug)}"')
        return not wrong

    def _transport(self, meant: set[str]) -> None:
        """Decide how the server is reached. `meant`: keys that are probably there, but misspelt."""
        command, url = bool(self._own.get("command")), bool(self._own.get("url"))
        if command and url:
            self._problem(("url",), 'an entry has either "command" or "url"', "remove one of them")
        elif not command and not url and not meant & {"command", "url", *names_with("renamed")}:
            below = ("command",) if "command" in self._members else ()
            self._problem(below, 'an entry needs a "command" or a "url"', "write the program to start, or the address")
        written = next((key for key in _TYPES if self._members.get(key) is not None), None)
        if written is None:
            remote: Kind = "websocket" if str(self._own.get("url")).startswith(("ws:", "wss:")) else "http"
            self._kind = remote if url else "stdio"
            self._note_origin(("kind",), Origin(source="derived", place="url" if url else "command"))
            return
        word = self._members[written]
        kind = KINDS.get(word) if isinstance(word, str) else None
        if kind is None:
            self._problem((written,), "must be one of " + ", ".join(f'"{each}"' for each in KINDS))
            return
        self._kind = kind
        self._note_origin(("kind",), self._around.findings.origin(self._at((written,))))
        if (kind == "stdio" and url) or (kind != "stdio" and command):
            wanted = '"command"' if kind == "stdio" else '"url"'
            self._problem((written,), f"a server of this type has a {wanted}", "correct the type, or leave it out")

    def _replace(self, below: KeyPath, text: str, *, home: bool = False, root: bool = False) -> str:
        """Return a text with what stands for something replaced, as a URI if `root`; record what is wrong."""
        lookups = Lookups(self._around.environ)
        try:
            text = expand(text, lookups)
            text = expand_home(text, lookups) if home else text
            return root_uri(text, self._around.directory) if root else text
        except ConfigError as error:
            self._problem(below, error.message, self._way_out(below, error))
            return text
        finally:
            self._note_origin(below, self._around.findings.origin(self._at(below), lookups.names))

    def _way_out(self, below: KeyPath, error: ConfigError) -> str:
        """Return what can be done about a text: a running daemon gets no other environment, but follows its file."""
        keys = [each for each in below if isinstance(each, str) and each and "." not in each]
        if not isinstance(error, UnsetVariable) or len(keys) < len(below):  # `edit` names no place in a list
            return error.hint
        order = command("edit", self._name, "--set", f"{'.'.join(keys)}=VALUE")
        return f"give a value with: {order}; or {error.hint}"

    def _replace_tiered(self, below: KeyPath, text: str) -> str:
        """Do that for a text that values of teams and users may stand in; return it with the defaults of these."""
        lookups = Lookups(self._around.environ)
        try:
            parts = split(text, lookups)
        except ConfigError as error:
            self._problem(below, error.message, self._way_out(below, error))
            return text
        finally:
            self._note_origin(below, self._around.findings.origin(self._at(below), lookups.names))
        tiered = TieredText(below, parts)
        if tiered.references:
            self._tiered.append(tiered)
        return " ".join(tiered.fill(lambda reference: reference.default or ""))

    def _values(self) -> None:
        """Read what is said of values, once it is known where they stand."""
        own = self._own[VALUES] = read_values(self._own.get(VALUES, {}), self._problem)
        several = {name: bool(members.get("several")) for name, members in own.items()}
        for fault in place_faults(self._tiered, several, self._own.get("command") or "", self._own.get("args", ())):
            self._problem(*fault)

    def _expand(self) -> None:
        own = self._own
        for key in ("command", "args", "env", "cwd", "url", "replicas", "headers", "roots"):
            replace: Callable[[KeyPath, str], str] = self._replace_tiered
            if key in ("command", "cwd", "roots"):
                replace = partial(self._replace, home=True, root=key == "roots")
            elif key == "replicas":
                replace = self._replace
            match own.get(key):
                case str(text) if text:
                    own[key] = replace((key,), text)
                case list(texts):
                    own[key] = [replace((key, at), text) for at, text in enumerate(texts)]
                case dict(texts):
                    own[key] = {name: replace((key, name), text) for name, text in texts.items()}
        if own.get("cwd"):
            own["cwd"] = str(self._around.directory / own["cwd"])

    def _environment(self) -> None:
        """Put the variables of all servers below those of `envFile`, and these below those of `env`."""
        own: dict[str, str] = self._own.get("env", {})
        written = self._members.get("env")
        withheld = {name for name, value in written.items() if value is None} if isinstance(written, dict) else set()
        origins = self._around.findings.origins
        shared = self._around.shared if self._kind == "stdio" else ValueLayer()
        in_entry = ValueLayer(own, {name: origins[self._name, ("env", name)] for name in own})
        env = self._lay(("env",), shared, self._env_file(), in_entry)
        env = self._own["env"] = {name: value for name, value in env.items() if name not in withheld}
        self._own["passed"] = [name for name in env if origins[self._name, ("env", name)].source == "environment"]

    def _env_file(self) -> ValueLayer:
        name = self._members.get("envFile")
        if not name:
            return ValueLayer()
        expanded = self._replace(("envFile",), name, home=True)
        if self._failed:
            return ValueLayer()
        if "\0" in expanded:
            self._problem(("envFile",), "holds a NUL character", "remove it")
            return ValueLayer()
        path = self._around.directory / expanded
        try:
            return parse_env_file(self._around.read_file(path), str(path))
        except ConfigError as error:
            place = f" (line {error.line} of it)" if error.line else ""
            self._problem(("envFile",), f"the file cannot be used: {error.message}{place}", error.hint)
            return ValueLayer()

    def _limits(self) -> None:
        """Check what would be refused at every start, and whether the daemon would be a server of itself."""
        itself = faults_of_itself(self._own, self._around.listen) if self._enabled else ()
        stand_ins = fill_in(self._own, self._tiered, lambda text, each: "x" if each.default is None else each.default)
        instances = _instance_faults(self._own, self._kind) if self._enabled else ()
        for fault in (*launch_faults({**self._own, **stand_ins}), *itself, *instances):
            self._problem(*fault)

    def _address(self) -> None:
        if self._kind != "stdio" and not is_address(self._own["url"], self._kind):
            schemes = " or ".join(f"{scheme}://" for scheme in SCHEMES[self._kind])
            self._problem(("url",), "is not an address for this type of server", f"it begins with {schemes}")

    def _logins(self) -> None:
        members = self._own.pop("oauth", None)
        if members is None:
            return
        origins = self._around.findings.origins
        del origins[self._name, ("oauth",)]  # what is not written in it is the default, not of its line

        def problem(key: str, message: str, hint: str) -> None:
            self._problem(("oauth", spelled.get(key, key)), message, hint)

        spelled: dict[str, str] = {}
        own, spelled = translate_oauth(members, problem)
        for below, message, hint in type_faults(own, keys_of(OAuthConfig)):
            problem(str(below[0]), message, hint)
        for key, value in own.items():
            below = ("oauth", spelled.get(key, key))
            self._note_origin(below, self._around.findings.origin(self._at(below)))
            if isinstance(value, str) and not self._failed and self._enabled:
                own[key] = self._replace(below, value)
            self._note_origin(("oauth", key), origins[self._name, below])
        if not self._failed and self._enabled:
            check(own, problem)
        self._own["oauth"] = own

    def _sandbox(self) -> None:
        if SANDBOX in self._own:
            home = self._around.environ.get("HOME", "/")
            self._own[SANDBOX] = read_sandbox(self._own[SANDBOX], self._place, home, self._problem)
            check_sandbox(self._own, home, self._problem, process=self._kind == "stdio")

    def _place(self, below: KeyPath, text: str) -> str:
        return str(self._around.directory / (self._replace(below, text, home=True) if self._enabled else text))

    def _tools(self) -> None:
        own = self._own["tools"] = _read_tools(self._members, self._problem)
        self._around.findings.origins.pop((self._name, ("tools",)), None)  # as with logins
        places: dict[KeyPath, KeyPath] = {
            ("tools", key): below for key, below in _places_of(self._members, own).items()
        }
        approved = _read_names(self._members, _APPROVED, self._problem)
        if approved and "confirm_except" not in self._own:
            places["confirm_except",] = next((name,) for name in _APPROVED if name in self._members)
        for key, below in places.items():
            self._note_origin(key, self._around.findings.origin(self._at(below)))
        self._own["confirm_except"] = [*self._own.get("confirm_except", ()), *(approved or ())]

    def _remark(self, as_written: Iterable[Remark]) -> None:
        """Note what is allowed but perhaps not meant."""
        notes: list[Remark] = list(unused_remarks(self._members, self._around.client))
        if self._enabled:
            notes += [
                *as_written,
                *_rename_remarks(self._own["tools"]),
                *value_remarks(self._own[VALUES], self._tiered),
            ]
        if self._enabled and self._kind == "stdio":
            notes += self._around.missing(self._own)
        for below, message, hint in notes:
            self._around.findings.note(self._at(below), message, hint, self._name)
