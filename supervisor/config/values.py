"""What a value may be: units with their bounds, the types of structs in words, and what a system would refuse. Pure.

Rules of this file:
- Plain JSON values are checked against the annotations of a struct, and the words come from the types, so that messages
  and documentation cannot disagree with the code.
- A message says what is expected, never what was found: the value may be a secret.
- What the operating system, or HTTP, would refuse of an entry at every start is a fault of it (execve(2), RFC 9110).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_address
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import NODEFAULT, Meta, Struct, inspect, structs

from actors.errors import ConfigError
from supervisor.config.expansion import Origin, is_env_name
from supervisor.config.jsonc import ConfigText, KeyPath, show_path
from supervisor.config.keys import hint_of, is_comment

T = TypeVar("T")

Seconds = Annotated[float, Meta(ge=0, le=31_536_000)]
"""A duration of at most a year."""

PositiveSeconds = Annotated[float, Meta(ge=0.001, le=31_536_000)]
"""A duration that cannot be switched off."""

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]

Size = Annotated[int, Meta(ge=1024, le=1_073_741_824)]
"""Bytes, from 1 KiB to 1 GiB."""

Mebibytes = Annotated[int, Meta(ge=1, le=1_073_741_824)]
"""Memory, from 1 MiB on."""

TokenBudget = Annotated[int, Meta(ge=1000, le=1_000_000_000)]
"""Tokens of a result; less would hardly hold its shape and where the rest is."""

Derived = Annotated[T, Meta(extra={"derived": True})]
"""A field that is no key of the file, but follows from others."""

Kind = Literal["stdio", "http", "sse", "websocket"]
"""How a server is reached. `http` is MCP's Streamable HTTP, `sse` the older HTTP+SSE."""

KINDS: Final[Mapping[str, Kind]] = {
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

Restart = Literal["transient", "permanent", "temporary"]
"""OTP's words: restart only after a failure, always, never."""

Ask = Literal["none", "clients", "everyone"]
"""Whom servers may ask: nobody, clients that say that they can be asked, or through their models all others, too."""

Auth = Literal["none", "tokens", "oauth", "both"]
"""What a request has to show: nothing, a token of the daemon's own, one of an identity provider, or either."""

OWN_TOKENS: Final = ("tokens", "both")
PROVIDER_TOKENS: Final = ("oauth", "both")
"""With which of `auth` tokens of the daemon's own are taken, and those of identity providers."""

Confirm = Literal["none", "safe", "moderate", "dangerous"]
"""The safety level from which on a tool needs a yes; no level needs one with the first."""

Eras = Literal["auto", "legacy", "modern"]

Grant = Literal["authorization_code", "client_credentials"]
"""How tokens are got (RFC 6749 1.3): a user says yes, or the client has rights of its own."""

SandboxKind = Literal["bubblewrap", "none"]
"""What a local server is put into, if anything."""

Whose = Literal["everyone", "user"]
"""Whose a login is: one for all who have the server, or one for each user."""

SigningAlgorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
"""What a client's own key signs by (RFC 7518 3.1)."""

LogLevel = Literal["debug", "info", "warning", "error"]

LogFormat = Literal["text", "json"]
"""How the daemon writes its log: lines for people, or an object of JSON on each line."""

Rerank = Literal["auto", "off", "neural"]
"""Whether search compares meanings: if a sentence model is installed, never, or with a warning without one."""

Structured = Literal["auto", "always", "never"]
"""Whether a search answers with structured content beside its text."""

MIB = 1024 * 1024


MAX_PROBLEMS = 20
"""Problems recorded for one server; more of them help nobody, and a hostile file has a hundred thousand."""

Remark = tuple[KeyPath, str, str]
"""A key, from its entry inwards; what is wrong with it, or odd; what to do."""

_LINE = re.compile(r"\bline [0-9]+")
_WORDS: Mapping[type, str] = {
    inspect.BoolType: "true or false",
    inspect.StrType: "a string",
    inspect.NoneType: "null",
    inspect.StructType: "an object",
}
_UNITS: Mapping[str, str] = {
    "s": " of seconds",
    "bytes": " of bytes",
    "mib": " of MiB",
    "percent": " of percent",
    "chars": " of characters",
}
"""By the end of a name."""
_EXAMPLES: Mapping[type, str] = {
    inspect.VarTupleType: 'for example ["-y", "some-package"], each word a string of its own',
    inspect.DictType: 'for example {"NAME": "value"}',
}
"""What to write instead of a value of another type."""


class Key(Struct, frozen=True, kw_only=True):
    """One key of a configuration object: its annotation, what msgspec says of that, its default."""

    name: str
    annotation: Any
    type: inspect.Type
    default: Any

    @property
    def expects(self) -> str:
        """Return in words what the key takes, with unit and bounds."""
        return expectation(self.type, _unit(self.name))

    def faults(self, value: object) -> Iterator[tuple[KeyPath, str]]:
        """Yield where, relative to `value`, it does not fit, and what is expected there."""
        items: Iterable[tuple[str | int, object]] = ()
        if isinstance(self.type, inspect.VarTupleType) and isinstance(value, list):
            items = enumerate(value)
        elif isinstance(self.type, inspect.DictType) and isinstance(value, dict):
            items = value.items()
        held = self._inner
        if isinstance(held, inspect.StructType):
            wrong, expected = [at for at, item in items if not isinstance(item, dict)], "an object"
        elif held is None or isinstance(held, inspect.StrType):
            wrong, expected = [at for at, item in items if not isinstance(item, str)], "a string"
        else:
            wrong = [at for at, item in items if not self._fits({at: item})]
            expected = expectation(held, _unit(self.name))
        if wrong:
            yield from (((at,), expected) for at in wrong)
        elif not self._fits(value):
            yield (), self.expects

    @property
    def _inner(self) -> inspect.Type | None:
        """What an object of the file has as values, or a list of objects as items."""
        if isinstance(self.type, inspect.DictType):
            return self.type.value_type
        if isinstance(self.type, inspect.VarTupleType) and isinstance(self.type.item_type, inspect.StructType):
            return self.type.item_type
        return None

    def _fits(self, value: object) -> bool:
        if isinstance(self.type, inspect.StructType):  # the keys in it are checked by themselves
            return isinstance(value, dict)
        if isinstance(self._inner, inspect.StructType):
            if isinstance(self.type, inspect.VarTupleType):
                return isinstance(value, list) and len(value) <= (self.type.max_length or len(value))
            return isinstance(value, dict)
        try:
            msgspec.convert(value, self.annotation)
        except msgspec.ValidationError:
            return False
        return True


@cache
def keys_of(struct: type[Struct]) -> Mapping[str, Key]:
    """Return the keys that a struct takes: its fields but those that are `Derived`."""
    keys: dict[str, Key] = {}
    for field in structs.fields(struct):
        type_ = inspect.type_info(field.type)
        if not isinstance(type_, inspect.Metadata):
            default = field.default if field.default_factory is NODEFAULT else field.default_factory()
            keys[field.name] = Key(name=field.name, annotation=field.type, type=type_, default=default)
    return keys


def _unit(name: str) -> str:
    if name.endswith("_per_s"):
        return " a second"
    return _UNITS.get(name.rpartition("_")[2], "")


def expectation(kind: inspect.Type, unit: str = "") -> str:
    """Return in words what a type takes: `a number of seconds from 0 to 60`."""
    match kind:
        case inspect.IntType():
            return f"a whole number{unit} from {kind.ge} to {kind.le}"
        case inspect.FloatType():
            return f"a number{unit} from {kind.ge} to {kind.le}"
        case inspect.LiteralType():
            return "one of " + ", ".join(f'"{value}"' for value in kind.values)
        case inspect.VarTupleType(item_type=inspect.StructType()):
            return "a list of objects" if kind.max_length is None else f"a list of at most {kind.max_length} objects"
        case inspect.VarTupleType():
            return "a list of strings" if kind.max_length is None else f"a list of at most {kind.max_length} strings"
        case inspect.DictType(value_type=inspect.StructType()):
            return "an object of objects"
        case inspect.DictType(value_type=inspect.StrType()):
            return "an object of strings"
        case inspect.DictType():
            return f"an object, each value {expectation(kind.value_type, unit)}"
        case inspect.UnionType():
            return " or ".join(expectation(each, unit) for each in kind.types)
    if type(kind) not in _WORDS:
        raise TypeError(f"no configuration key has the type {kind}")
    return _WORDS[type(kind)]


class SeveralErrors(ConfigError):
    """Several faults of a file, in its order: a line each, `MAX_PROBLEMS` at most. Its place is that of the first."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(first.message, path=first.path, key=first.key, line=first.line, hint=first.hint)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        more = len(self.errors) - MAX_PROBLEMS
        return "\n".join([*map(str, self.errors[:MAX_PROBLEMS]), *([f"and {more} more"] if more > 0 else [])])


def raise_together(fatal: list[ConfigError]) -> None:
    """Raise what is wrong with the file, if anything is, in its order and at once: one look mends all."""
    if fatal:
        raise SeveralErrors(sorted(fatal, key=lambda error: error.line or 0)) if len(fatal) > 1 else fatal[0]


def raise_new(problems: Iterable[ConfigError], known: Iterable[ConfigError]) -> None:
    """Raise what is wrong that was not before, wherever that stood; all of it at once. Raises `ConfigError`."""
    before = {_fault(problem) for problem in known}
    new = [problem for problem in problems if _fault(problem) not in before]
    if new:
        raise SeveralErrors(new) if len(new) > 1 else new[0]


def _fault(problem: ConfigError) -> tuple[str | None, str, str]:
    return problem.server, problem.key, _LINE.sub("", problem.message)


class Findings:
    """What is wrong with a document, and what is only worth knowing, each with file, line and key.

    `origins` has where values come from, by the server's name, empty for the daemon, and the key under our names. What
    is not there is as its parent, or the default.
    """

    def __init__(self, document: ConfigText, path: str) -> None:
        self.problems: list[ConfigError] = []
        self.notes: list[ConfigError] = []
        self.origins: dict[tuple[str, KeyPath], Origin] = {}
        self._counts: Counter[str | None] = Counter()
        self._document = document
        self._path = path

    def error(self, where: KeyPath, message: str, hint: str = "", server: str | None = None) -> ConfigError:
        line, path = self._document.line(where), self._document.other_file(where) or self._path
        return ConfigError(message, path=path, key=show_path(where), line=line, hint=hint, server=server)

    def origin(self, where: KeyPath, variables: tuple[str, ...] = ()) -> Origin:
        """Return the origin of what stands at `where` in the document."""
        line, path = self._document.line(where), self._document.other_file(where)
        return Origin(source="file", place=show_path(where), line=line, path=path, variables=variables)

    @contextmanager
    def at(self, where: KeyPath, hint: str = "") -> Iterator[None]:
        """Give what the block raises file, line and key; `hint` is for a `ValueError`."""
        try:
            yield
        except ConfigError as error:
            raise self.error(where, error.message, error.hint) from None
        except ValueError as error:
            raise self.error(where, str(error), hint) from None

    def problem(self, where: KeyPath, message: str, hint: str = "", server: str | None = None) -> None:
        """Record an error at `where`; `server` is the entry that cannot be used because of it."""
        self.record(self.error(where, message, hint, server))

    def record(self, problem: ConfigError) -> None:
        """Record an error that `error` gave, unless its server has enough of them."""
        self._counts[problem.server] += 1
        if self._counts[problem.server] <= MAX_PROBLEMS:
            self.problems.append(problem)

    def note(self, where: KeyPath, message: str, hint: str = "", server: str | None = None) -> None:
        self.notes.append(self.error(where, message, hint, server))


Problem = Callable[[KeyPath, str, str], None]
"""Records a fault: the key from where its reader begins inwards, what is wrong, and what to do."""


def read_members(struct: type[Struct], written: Mapping[str, Any], place: KeyPath, problem: Problem) -> dict[str, Any]:
    """Return the members of the object at a place that a struct takes; unknown ones and wrong types are problems."""
    keys = keys_of(struct)
    own = {key: value for key, value in written.items() if not is_comment(key)}
    for key in own.keys() - keys.keys():
        problem((*place, key), "unknown key", hint_of(key, keys))
    faults = list(type_faults(own, keys))
    for below, message, hint in faults:
        problem((*place, *below), message, hint)
    wrong = {below[0] for below, *_ in faults}
    return {key: value for key, value in own.items() if key in keys and key not in wrong}


def type_faults(members: Mapping[str, Any], keys: Mapping[str, Key]) -> Iterator[Remark]:
    """Yield the members that are not of the type of their key, and what is expected of them."""
    for name, key in keys.items():
        if name in members:
            for below, text in key.faults(members[name]):
                yield (name, *below), f"must be {text}", _hint(key, text, below)


def _hint(key: Key, expected: str, below: KeyPath) -> str:
    if below:
        return "put quotes around it" if expected == "a string" else ""
    match key.type:
        case inspect.DictType(value_type=inspect.StructType() | inspect.DictType()):
            return ""
        case inspect.VarTupleType(item_type=inspect.StructType()):
            return ""
        case inspect.DictType(value_type=value) if not isinstance(value, inspect.StrType):
            return 'for example {"NAME": 60}'
    return _EXAMPLES.get(type(key.type), "")


def build(struct: type[Struct], members: Mapping[str, Any]) -> Any:
    """Return the struct of members without `type_faults`: lists become tuples, whole seconds floats."""
    return msgspec.convert(dict(members), struct)


MAX_STRING_BYTES = 131_071
"""Linux's limit of one argument or one `NAME=value` (MAX_ARG_STRLEN, less the terminating zero)."""

MAX_LAUNCH_BYTES = 1024 * 1024
"""Arguments and `env` of one server together; Linux takes 2 MiB with the usual stack limit."""

_MAX_ADDRESS_CHARS = 64 * 1024
"""The longest address that our HTTP client takes."""

_MAX_HOST_CHARS = 253
_BRACKETED = re.compile(r"\[[^\[\]]+\](:\d*)?")
"""An address of IPv6 where a host stands (RFC 3986 3.2.2); urlsplit takes the brackets in any order."""
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
"""A part of a name that can be looked up (RFC 1035 2.3.4); names of services have underscores."""
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token (RFC 9110 5.6.2)."""
_FIELD_VALUE = re.compile(r"(?:[!-~](?:[ -~\t]*[!-~])?)?")
"""What our HTTP client sends as it is (RFC 9110 5.5)."""

SCHEMES: Mapping[Kind, tuple[str, ...]] = {
    "http": ("http", "https"),
    "sse": ("http", "https"),
    "websocket": ("ws", "wss"),
}

_NAMED = {"\0": "a NUL character", "\n": "a line break", "\r": "a line break"}


def launch_faults(own: Mapping[str, Any]) -> Iterator[Remark]:
    """Yield what of an entry, given by our keys, cannot be passed on."""
    env: dict[str, str] = own.get("env", {})
    headers: dict[str, str] = own.get("headers", {})
    arguments: list[tuple[KeyPath, str]] = [(("command",), own.get("command", ""))]
    arguments += ((("args", at), text) for at, text in enumerate(own.get("args", ())))
    if own.get("command") is not None and not own.get("url") and not own["command"].strip():
        yield ("command",), "is blank", "write the program to start"
    for below, text in arguments:
        yield from _text(below, text, forbidden="\0\n")
    for name, text in env.items():
        if not is_env_name(name):
            yield ("env", name), "an environment variable cannot have this name", 'no "=", no blanks'
        yield from _text(("env", name), text, forbidden="\0")
    for name, text in headers.items():
        if not _FIELD_NAME.fullmatch(name):
            yield ("headers", name), "not a name of an HTTP header", "letters, digits and dashes"
        yield from _text(("headers", name), text, forbidden="\0\r\n")
        if not _FIELD_VALUE.fullmatch(text) and not set("\0\r\n") & set(text):
            hint = "ASCII without blanks around it; encode what is more, as its server wants it"
            yield ("headers", name), "is not the value of an HTTP header", hint
    yield from _text(("cwd",), own.get("cwd") or "", forbidden="\0")
    size = sum(len(text) + 1 for _, text in arguments)
    size += sum(len(text) + len(name) + 2 for name, text in env.items())
    if size > MAX_LAUNCH_BYTES:
        yield (), f"arguments and environment are over {MAX_LAUNCH_BYTES} bytes", "pass a file instead"


def _text(below: KeyPath, text: str, forbidden: str) -> Iterator[Remark]:
    for character in forbidden:
        if character in text:
            yield below, f"holds {_NAMED[character]}", "remove it; put longer texts and scripts into a file"
            return
    if len(text.encode(errors="surrogatepass")) > MAX_STRING_BYTES:
        yield below, f"is longer than {MAX_STRING_BYTES} bytes", "pass a file instead"


def is_address(url: str, kind: Kind) -> bool:
    """Say whether a remote server of that kind can be at an address, and a request be written for it."""
    try:
        parts = urlsplit(url)
        # urlsplit drops line breaks in silence; what would be sent has them.
        plain = len(url) <= _MAX_ADDRESS_CHARS and min(url, default="") > " " and "\x7f" not in url
        place = parts.netloc.rpartition("@")[2]
        bracketed = _BRACKETED.fullmatch(place) is not None or not ("[" in place or "]" in place)
        named = bracketed and parts.port != 0 and _is_host(parts.hostname or "")
        return plain and parts.scheme in SCHEMES[kind] and named
    except ValueError:
        return False


def _is_host(host: str) -> bool:
    """Say whether a host can be looked up. Raises `ValueError` for what is neither an address nor a name."""
    if ":" in host:
        return ip_address(host.partition("%")[0]).version == 6
    if not host.isascii() or "xn--" in host:
        import idna  # it takes a while, and most names do without it

        host = idna.encode(idna.decode(host.lower())).decode()
    labels = host.removesuffix(".").split(".")
    if len(labels) == 4 and all(label.isdecimal() for label in labels):
        return ip_address(host).version == 4
    return len(host) <= _MAX_HOST_CHARS and all(_LABEL.fullmatch(label) for label in labels)
