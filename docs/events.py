"""The kinds of events with their fields, as the documentation lists them: from the structs themselves."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import indent
from typing import Any, Final

import msgspec

from actors.kit.documented import descriptions
from supervisor.events.event import EventEnvelope
from supervisor.events.kinds import KINDS, TYPES, DiscoveredTool, EventData, OfServer
from supervisor.reference.configuration import bullet, paragraph, with_links

AUDIENCES: Final = {
    "entry": "members who have the server, without details",
    "server": "members who have the server, without details",
    "launch": "members for whom alone the server is started",
    "caller": "the member who made the call",
    "auditors": "no member",
}
"""Who hears of a kind, beside auditors and admins."""
_WORDS: Final = {
    msgspec.inspect.StrType: "text",
    msgspec.inspect.IntType: "whole number",
    msgspec.inspect.FloatType: "number",
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.RawType: "JSON",
    msgspec.inspect.VarTupleType: "list",
    msgspec.inspect.DictType: "object",
    msgspec.inspect.StructType: "object",
}


def event_list() -> str:
    """Return an item for each kind: what it says, who hears of it, and its own fields."""
    return "\n".join(_kind(name, kind) for name, kind in KINDS.items())


def envelope_fields() -> str:
    return _list(EventEnvelope)


def server_fields() -> str:
    """Return the fields that all kinds about a server have."""
    return _list(OfServer)


def tool_fields() -> str:
    return _list(DiscoveredTool)


def _list(struct: type[msgspec.Struct]) -> str:
    return "\n".join(bullet(each) for each in _fields(struct, ()))


def _kind(name: str, kind: type[Any]) -> str:
    base = next((each for each in kind.__mro__[1:] if each in TYPES), None)
    also = f" It has the fields of `{TYPES[base]}`, too." if base else ""
    text = " ".join((kind.__doc__ or "").split()) + also
    lines = [f"**`{name}`** ({AUDIENCES[kind.audience]})", with_links(text)]
    item = "\\\n".join(map(paragraph, lines))
    shared: type[EventData] = base or (OfServer if issubclass(kind, OfServer) else EventData)
    fields = "\n".join(bullet(each) for each in _fields(kind, shared.__struct_fields__))
    return f"- {indent(item, '  ').lstrip()}" + (f"\n\n{indent(fields, '  ')}\n" if fields else "\n")


def _fields(struct: type[msgspec.Struct], known: tuple[str, ...]) -> Iterator[str]:
    texts: dict[str, str] = {}
    for each in reversed(struct.__mro__[:-3]):
        texts |= descriptions(each) if issubclass(each, msgspec.Struct) else {}
    for field in msgspec.structs.fields(struct):
        if field.name not in known:
            yield f"**`{field.name}`** ({_takes(field.type)}): {with_links(texts[field.name])}"


def _takes(annotation: Any) -> str:
    kind = msgspec.inspect.type_info(annotation)
    if isinstance(kind, msgspec.inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType))
    return _WORDS[type(kind)]
