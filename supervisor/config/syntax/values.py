"""Check plain JSON values against the annotations of a struct, and say in words what is expected.

Rules of this file:
- Words come from the types, so that messages and documentation cannot disagree with the code.
- A message says what is expected, never what was found: the value may be a secret.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct, inspect, structs

from actors.errors import ConfigError
from supervisor.config.syntax.jsonc import ConfigText, KeyPath, show_path
from supervisor.config.syntax.keys import hint_of, is_comment
from supervisor.config.syntax.origins import Origin

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
        case inspect.DictType(value_type=inspect.StructType()) | inspect.VarTupleType(item_type=inspect.StructType()):
            return ""
        case inspect.DictType(value_type=value) if not isinstance(value, inspect.StrType):
            return 'for example {"NAME": 60}'
    return _EXAMPLES.get(type(key.type), "")


def build(struct: type[Struct], members: Mapping[str, Any]) -> Any:
    """Return the struct of members without `type_faults`: lists become tuples, whole seconds floats."""
    return msgspec.convert(dict(members), struct)
