"""Query parameters to a struct: every parameter is a field of it, and whatever is wrong has a name.

A field that is a tuple may be given several times or with commas; `true`, `false`, `1` and `0` are the booleans.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, get_type_hints

import msgspec

from actors.errors import InvalidArguments

S = TypeVar("S", bound=msgspec.Struct)


def decode(pairs: Iterable[tuple[str, str]], type_: type[S]) -> S:
    """Return the struct that the parameters describe. Raises `InvalidArguments` that names the parameter."""
    hints = get_type_hints(type_, include_extras=True)
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        if name not in hints:
            known = sorted(hints)
            raise InvalidArguments(
                f"there is no parameter {name[:60]!a}; known are: {', '.join(known)}", details={"known": known}
            )
        given.setdefault(name, []).append(value)
    return type_(**{name: _value(name, values, hints[name]) for name, values in given.items()})


def _value(name: str, values: list[str], hint: Any) -> Any:
    described = msgspec.json.schema(hint)
    several = described.get("type") == "array"
    if len(values) > 1 and not several:
        raise _wrong(name, "it was given more than once")
    raw = [part.strip() for value in values for part in value.split(",") if part.strip()] if several else values[0]
    try:
        return msgspec.convert(raw, hint, strict=False)
    except msgspec.ValidationError as error:
        choices = _choices(described)
        raise _wrong(name, f"known are: {', '.join(choices)}" if choices else str(error)) from None


def _choices(described: dict[str, Any]) -> list[str]:
    options = [described, *described.get("anyOf", ())]
    return [str(value) for option in options for value in option.get("enum", ()) if value is not None]


def _wrong(name: str, why: str) -> InvalidArguments:
    return InvalidArguments(f"the parameter {name!r}: {why}", details={"parameter": name})
