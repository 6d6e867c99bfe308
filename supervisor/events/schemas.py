"""The kinds of events as types of the Events extension (SEP-3415, "Listing Available Events"), and what a subscription
to one may narrow it to. Pure.

All comes from the structs: what a kind is, from its text, what it has, from its fields and theirs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from actors.errors import InvalidArguments
from actors.kit.documented import descriptions
from actors.protocol.wire import json
from supervisor.events.kinds import KINDS, EventData

Pattern = Annotated[str, Meta(min_length=1, max_length=256)]
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
"""A link of the reference, which is where the text of a kind is shown, too."""
_SIMPLE: Final = {
    msgspec.inspect.IntType: "integer",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.BoolType: "boolean",
}


class EventFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a subscription: only what is about these."""

    server: Pattern | None = None
    """Only of this server; `*` stands for any rest."""
    tool: Pattern | None = None
    """Only about this tool, by its server's own name; `*` stands for any rest."""

    def passes(self, data: EventData) -> bool:
        return all(
            pattern is None or _matches(pattern, getattr(data, _MEANS[name], None))
            for name, pattern in (("server", self.server), ("tool", self.tool))
        )


_MEANS: Final[Mapping[str, str]] = {"server": "server_slug", "tool": "tool_name"}
"""Which field of an event an argument is about; a kind without it has not that argument."""
_filter: Final = msgspec.json.Decoder(EventFilter)


def _matches(pattern: str, value: str | None) -> bool:
    return value is not None and fnmatchcase(value, pattern)


def read_filter(kind: type[EventData], arguments: bytes) -> EventFilter:
    """Read the arguments of a subscription to a kind, a JSON object. Raises `InvalidArguments`."""
    taken = _arguments_of(kind)
    for name in json.members(arguments):
        if name not in taken:
            known = f"known are: {', '.join(taken)}" if taken else "there are none"
            raise InvalidArguments(f"there is no argument {name[:60]!a}; {known}")
    try:
        return json.read(_filter, arguments)
    except json.UnreadableJson as error:
        raise InvalidArguments(f"the arguments: {error}") from None


def _arguments_of(kind: type[EventData]) -> list[str]:
    return [name for name, field in _MEANS.items() if field in kind.__struct_fields__]


@cache
def definition_of(name: str) -> msgspec.Raw:
    """Return the type that a kind is, an entry of `events/list` but for its ways of delivery: a JSON object."""
    kind = KINDS[name]
    entry = {
        "name": name,
        "description": _plain(kind.__doc__ or ""),
        "inputSchema": {**_struct(EventFilter, _arguments_of(kind)), "additionalProperties": False},
        "payloadSchema": _struct(kind),
    }
    return msgspec.Raw(msgspec.json.encode(entry))


def _struct(struct: type[Any], names: Collection[str] | None = None) -> dict[str, Any]:
    """Return the schema of a struct, or of some of its fields. What is not known is left out: nothing is ever null."""
    texts: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        texts |= descriptions(each) if issubclass(each, Struct) else {}
    fields = [each for each in msgspec.structs.fields(struct) if names is None or each.name in names]
    properties = {each.name: _value(msgspec.inspect.type_info(each.type)) for each in fields}
    for name, schema in properties.items():
        if name in texts:
            schema["description"] = _plain(texts[name])
    required = [each.name for each in fields if each.required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _value(of: msgspec.inspect.Type) -> dict[str, Any]:
    match of:
        case msgspec.inspect.UnionType(types=types):
            (of,) = (each for each in types if not isinstance(each, msgspec.inspect.NoneType))
            return _value(of)
        case msgspec.inspect.StrType(min_length=least, max_length=most):
            bounds = {"minLength": least, "maxLength": most}
            return {"type": "string", **{name: bound for name, bound in bounds.items() if bound is not None}}
        case msgspec.inspect.VarTupleType(item_type=item):
            return {"type": "array", "items": _value(item)}
        case msgspec.inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _value(value)}
        case msgspec.inspect.StructType(cls=struct):
            return _struct(struct)
        case msgspec.inspect.RawType():
            return {}
    return {"type": _SIMPLE[type(of)]}


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", " ".join(text.split()))
