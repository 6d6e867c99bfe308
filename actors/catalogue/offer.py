"""What one server offers: its tools, resources, templates, prompts, skills and event types, as it declared them.

`definition` is always the server's own JSON text, untouched; the other fields are what ranking and routing need of it.
What a tool has of it as JSON is a part of that text, which stands in memory once, and once in the store. Defaults are
omitted when an offer is stored: `NO_RAW` is no JSON. None of the small values can be part of a cycle, so the search for
garbage passes them over (`gc=False`): it would stop the loop for the longer, the more tools there are.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final, Literal, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from actors.kit.decoding import GivesWay
from actors.protocol.agreement.versions import Era
from actors.protocol.listing import ItemKind, Kind
from actors.protocol.wire import json
from actors.protocol.wire.mirrors import Mirror

_PACKED_FROM_BYTES = 1024 * 1024
"""A larger offer is kept compressed: handing the bytes to the database holds up all threads for as long as it takes."""
_MAX_SAVED_BYTES = 512 * 1024 * 1024
_MAX_VERSION_CHARS = 120
MAX_NAME = 256
MAX_DESCRIPTION = 16 * 1024
_PACKED = zlib.compress(b"", 1)[:1]
NO_RAW = msgspec.Raw(b"")
_EMPTY_OBJECT = msgspec.Raw(b"{}")
S = TypeVar("S", bound=msgspec.Struct)
Delivery = Literal["poll", "push", "webhook"]
DELIVERIES: Final[tuple[Delivery, ...]] = get_args(Delivery)


class Tool(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One tool. `described` is its description as its definition has it, in JSON: most are hardly ever read.

    `required` are the parameters that a call must have: those that the schema requires and for which it has no default.

    `needs_task`: it can only be run as a task (2025-11-25, server/tools "taskSupport").
    `mirrors`: which arguments the head of a call repeats over HTTP. `misplaced`: why it cannot be called there.
    `own`: the tool as its server has it, where the configuration, or a plugin, shows it otherwise.
    `digest` is that of the whole definition, `alarms` the codes of what is suspicious about it, and `look` is how its
    name looks, see `lists.marks`.
    """

    name: str
    title: str = ""
    described: msgspec.Raw = msgspec.field(name="description", default=NO_RAW)
    input_schema: msgspec.Raw = _EMPTY_OBJECT
    required: tuple[str, ...] = ()
    annotations: msgspec.Raw = NO_RAW
    meta: msgspec.Raw = NO_RAW
    definition: msgspec.Raw = _EMPTY_OBJECT
    mirrors: tuple[Mirror, ...] = ()
    misplaced: str = ""
    needs_task: bool = False
    own: Tool | None = None
    digest: bytes = b""
    alarms: tuple[str, ...] = ()
    look: str = ""

    @property
    def description(self) -> str:
        return json.read_or(json.STRING, self.described, "")


class _Written(msgspec.Struct, kw_only=True):
    name: str
    title: str = ""
    description: msgspec.Raw = NO_RAW
    input_schema: msgspec.Raw = msgspec.field(name="inputSchema")
    annotations: msgspec.Raw = NO_RAW
    meta: msgspec.Raw = msgspec.field(name="_meta", default=NO_RAW)


_written = msgspec.json.Decoder(_Written)


def members_of(definition: msgspec.Raw) -> dict[str, Any]:
    """Return the fields of a `Tool` that stand in a definition which clients can take. Raises `UnreadableJson`."""
    written = json.read(_written, definition)
    return {
        "name": written.name,
        "title": written.title[:MAX_NAME],
        "described": _cut(written.description),
        "input_schema": written.input_schema,
        "annotations": written.annotations,
        "meta": written.meta,
    }


def _cut(described: msgspec.Raw) -> msgspec.Raw:
    if len(described) <= MAX_DESCRIPTION:
        return described
    text = json.read(json.STRING, described)
    return described if len(text) <= MAX_DESCRIPTION else json.quoted(text[:MAX_DESCRIPTION])


class Resource(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One resource, or one resource template if `template` is set (then `uri` is an RFC 6570 template)."""

    uri: str
    name: str = ""
    title: str = ""
    description: str = ""
    mime_type: str = ""
    meta: msgspec.Raw = NO_RAW
    definition: msgspec.Raw = _EMPTY_OBJECT
    template: bool = False


class Prompt(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One prompt."""

    name: str
    title: str = ""
    description: str = ""
    definition: msgspec.Raw = _EMPTY_OBJECT


class Skill(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One skill (SEP-2640), by the URI of its `SKILL.md`. `tools` are the names that it says it uses, as written."""

    uri: str
    name: str
    description: str = ""
    tools: tuple[str, ...] = ()
    definition: msgspec.Raw = _EMPTY_OBJECT

    @property
    def title(self) -> str:
        return ""


class EventType(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One event type (SEP-3415). `delivery` are the ways in which its server delivers it, of those that there are."""

    name: str
    description: str = ""
    delivery: tuple[Delivery, ...] = ()
    definition: msgspec.Raw = _EMPTY_OBJECT

    @property
    def title(self) -> str:
        return ""


Item = Tool | Resource | Prompt | Skill
Declared = Item | EventType


def key_of(entry: Declared) -> str:
    """Return what an entry of a list is told from others by."""
    return entry.uri if isinstance(entry, Resource | Skill) else entry.name


def kind_of(entry: Item) -> ItemKind:
    """Return which list an entry is of."""
    if isinstance(entry, Tool):
        return "tools"
    if isinstance(entry, Prompt):
        return "prompts"
    if isinstance(entry, Skill):
        return "skills"
    return "templates" if entry.template else "resources"


class Offer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that one server offers, as of one discovery. `problems` are reasons an operator can read.

    `partial`: the list of tools was not read to its end. `read_at`: when it was, in unix seconds; 0 if never, or if
    what was read is in doubt. `good_for_s`: for how long the server says that its lists are good; 0 if it says nothing.
    `barred`: names of tools that cannot be called as they are reached, see `Tool.misplaced`.
    `circular`: lists whose pages have no end at the server; all of them is here.
    `marked_by`: the rules by which its tools have their digests and alarms, see `lists.marks`; 0 if they have none.
    `answer` is what the server answered to the handshake, as it wrote it; an empty object if an earlier version read
    the offer.
    """

    tools: tuple[Tool, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    skills: tuple[Skill, ...] = ()
    events: tuple[EventType, ...] = ()
    instructions: str = ""
    server_info: msgspec.Raw = _EMPTY_OBJECT
    capabilities: msgspec.Raw = _EMPTY_OBJECT
    answer: msgspec.Raw = _EMPTY_OBJECT
    era: Era = "legacy"
    version: str = ""
    problems: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()
    circular: tuple[Kind, ...] = ()
    token_counts: dict[str, int] = {}
    tokens_exact: bool = False
    partial: bool = False
    read_at: float = 0.0
    good_for_s: float = 0.0
    marked_by: int = 0

    @property
    def server_version(self) -> str:
        """The version that the server says it has, empty if it says none."""
        return json.text_at(self.server_info, "version")[:_MAX_VERSION_CHARS]


LONG_LIST = 1000
"""Lists with more tools than that are compared and judged beside the loop: a thousand take some 2 ms, a thread 1 ms."""
LISTS = ("tools", "resources", "templates", "prompts", "skills", "events")
"""The first fields of an offer, in their order."""


def unchanged(before: Offer, after: Offer) -> bool:
    """Return whether two offers say the same; when they were read, and their token counts, do not matter."""
    counts, exact, good_for_s = before.token_counts, before.tokens_exact, before.good_for_s
    return before == replace(
        after, read_at=before.read_at, token_counts=counts, tokens_exact=exact, good_for_s=good_for_s
    )


def encode_offer(offer: Offer) -> bytes:
    """Return the bytes that the store keeps. An absent `Raw` is left out, not written: it would be no JSON.

    One by one, as other threads cannot run while one value is encoded; a long list is never there as a whole.
    """
    parts, size, kept = _parts_of(offer), 0, []
    for part in parts:
        kept.append(part)
        size += len(part)
        if size > _PACKED_FROM_BYTES:
            return _compress(chain(kept, parts))
    return b"".join(kept)


def _parts_of(offer: Offer) -> Iterator[bytes]:
    between = b"{"
    for name in LISTS:
        items: Sequence[Declared] = getattr(offer, name)
        before = between + b'"%b":[' % name.encode()
        for item in items:
            yield before + msgspec.json.encode(_saved(item))
            before = b","
        between = b"]," if items else between
    rest = msgspec.json.encode(replace(offer, **dict.fromkeys(LISTS, ())))
    yield (between if rest != b"{}" else between.removesuffix(b",")) + rest[1:]


_IN_DEFINITION: Final = {
    "title": "",
    "described": NO_RAW,
    "input_schema": _EMPTY_OBJECT,
    "annotations": NO_RAW,
    "meta": NO_RAW,
}


def _saved(item: Declared) -> Declared:
    """Return what is saved of an item: a tool without what stands in its definition, or one with a schema at least."""
    if not isinstance(item, Tool) or item.definition is _EMPTY_OBJECT:
        return item
    with suppress(json.UnreadableJson):
        if replace(item, **members_of(item.definition)) == item:
            return replace(item, **_IN_DEFINITION)
    return replace(item, input_schema=msgspec.Raw(bytes(item.input_schema)))  # another object than the default


def _compress(parts: Iterable[bytes]) -> bytes:
    packing, turns, packed = zlib.compressobj(1), GivesWay(), list[bytes]()
    for part in parts:
        packed.append(packing.compress(part))
        turns.between()
    return b"".join([*packed, packing.flush()])


_offer = msgspec.json.Decoder(Offer)


def decode_offer(data: bytes) -> Offer:
    """Read what `encode_offer` wrote. Raises `UnreadableJson` for anything else (an older format, say)."""
    try:
        offer = json.read(_offer, _decompress(data))
        return replace(_apart(offer), **{name: tuple(map(_read, getattr(offer, name))) for name in LISTS})
    except (TypeError, zlib.error) as error:
        raise json.UnreadableJson(f"no saved offer: {type(error).__name__}") from None


def _read(item: Declared) -> Declared:
    """Return what was saved as `_saved` has it."""
    if not isinstance(item, Tool) or item.input_schema is not _EMPTY_OBJECT or item.definition is _EMPTY_OBJECT:
        return _apart(item)
    definition = item.definition.copy()
    return replace(item, **members_of(definition), required=shared(item.required), definition=definition)


def _apart(value: S) -> S:
    """Return the same with JSON of its own: a part of the text that was read would keep all of that in memory."""
    fields = ((name, getattr(value, name)) for name in value.__struct_fields__)
    raws = {name: raw for name, raw in fields if isinstance(raw, msgspec.Raw) and raw is not NO_RAW}
    return replace(value, **{name: raw.copy() for name, raw in raws.items() if raw is not _EMPTY_OBJECT})


def shared(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of parameters, of which many tools have the same, as strings that these share."""
    return tuple(map(sys.intern, names))


def _decompress(data: bytes) -> bytes:
    if data[:1] != _PACKED:
        return data
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(data, _MAX_SAVED_BYTES)
    if not unpacking.eof:
        raise json.UnreadableJson("a saved offer is cut or too large")
    return text
