"""What changed between two discoveries of one server, by name and by field, and between two definitions of a tool.
Pure.

That a tool has another name now is told by its definition alone, as a guess would be worse than nothing: one tool that
went and one that came have it, and it says something (a description or parameters). More than `MAX_COMPARED_BYTES` of
definitions that came or went at once are not compared: that takes its time.

A definition is what its server wrote, so it may be anything: what is no JSON, or nested deeper than any real one, is
compared as a text. The order of members, and how numbers and texts are spelt, is no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, takewhile
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from actors.catalogue.offer import Item, Offer, Skill, Tool, key_of
from actors.protocol.wire import json

_FIELDS = ("title", "description", "input_schema", "annotations", "meta", "uri", "mime_type")
MAX_COMPARED_BYTES = 1024 * 1024
MAX_REMEMBERED = 200
"""Of one server; the newest stay."""

_Telling = tuple[str, str, bytes]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Names that came, went or stayed with another definition; `fields` says what differs in those.

    `renamed` has the new names of tools by their old ones; they are among those that came and went, too.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    fields: dict[str, tuple[str, ...]] = {}
    renamed: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class OfferChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of each list of a server."""

    tools: Change = Change()
    resources: Change = Change()
    prompts: Change = Change()

    def __bool__(self) -> bool:
        return bool(self.tools or self.resources or self.prompts)


class Revisions(msgspec.Struct, frozen=True):
    """Numbers that grow when a list changes, as a client can see it."""

    tools: int = 0
    resources: int = 0
    prompts: int = 0


class Compared:
    """The tools of a server before and after a reading; what differs is found out once, by the thread that asks first.

    Of that there are no `fields`.
    """

    def __init__(self, before: tuple[Tool, ...], after: tuple[Tool, ...]) -> None:
        self._before, self._after = before, after

    def of(self, before: tuple[Tool, ...], after: tuple[Tool, ...]) -> Compared:
        """Return the comparison of these lists: this one, if it is of the same."""
        return self if self._before is before and self._after is after else Compared(before, after)

    @cached_property
    def change(self) -> Change:
        if self._before is self._after:
            return Change()
        # Definitions are compared where they are: copies of a long list would take 40 ms.
        old, new = {tool.name: tool for tool in self._before}, {tool.name: tool for tool in self._after}
        both = ((name, old[name], tool) for name, tool in new.items() if name in old)
        return Change(
            added=tuple(sorted(new.keys() - old.keys())),
            removed=tuple(sorted(old.keys() - new.keys())),
            changed=tuple(
                sorted(name for name, was, now in both if was is not now and was.definition != now.definition)
            ),
            renamed=find_renames(self._before, self._after),
        )


def compare(before: Offer, after: Offer) -> OfferChange:
    """Return what differs. Token counts and problems do not count as differences. Skills are resources to clients."""
    tools = _compare(before.tools, after.tools)
    return OfferChange(
        tools=replace(tools, renamed=find_renames(before.tools, after.tools)),
        resources=_compare(_resources(before), _resources(after)),
        prompts=_compare(before.prompts, after.prompts),
    )


def _resources(offer: Offer) -> tuple[Item, ...]:
    return (*offer.resources, *offer.templates, *offer.skills)


def _name(entry: Item) -> str:
    """Return the name of an entry among those of its list; the first file of a skill may be a resource by itself."""
    return f"{entry.uri}#skill" if isinstance(entry, Skill) else key_of(entry)


def _compare(before: Sequence[Item], after: Sequence[Item]) -> Change:
    old, new = {_name(entry): entry for entry in before}, {_name(entry): entry for entry in after}
    differing = {
        name: _fields(old[name], entry)
        for name, entry in new.items()
        if name in old and old[name].definition != entry.definition
    }
    return Change(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(sorted(differing)),
        fields=differing,
    )


def _fields(before: Item, after: Item) -> tuple[str, ...]:
    changed = [field for field in _FIELDS if hasattr(after, field) and getattr(before, field) != getattr(after, field)]
    return tuple(changed) or ("definition",)


def find_renames(before: Iterable[Tool], after: Iterable[Tool]) -> dict[str, str]:
    """Return the new name of each tool of `before` that has another one now, by its old name, in sorted order."""
    old, new = {tool.name: tool for tool in before}, {tool.name: tool for tool in after}
    gone = [old[name] for name in old.keys() - new.keys()]
    came = [new[name] for name in new.keys() - old.keys()]
    if not gone or not came or sum(len(tool.definition) for tool in (*gone, *came)) > MAX_COMPARED_BYTES:
        return {}
    left, arrived = _by_definition(gone), _by_definition(came)
    pairs = ((left[key], arrived[key]) for key in left.keys() & arrived.keys())
    return dict(
        sorted(
            (was[0].name, now[0].name)
            for was, now in pairs
            if len(was) == len(now) == 1 and _without_name(was[0]) == _without_name(now[0])
        )
    )


def merge_renames(known: Mapping[str, str], fresh: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return present names by old ones; who has its old name back, or is not among all `names`, is forgotten."""
    present = frozenset(names)
    all_ = {**{old: fresh.get(new, new) for old, new in known.items()}, **fresh}
    valid = [(old, new) for old, new in all_.items() if new in present and old not in present]
    return dict(valid[-MAX_REMEMBERED:])


def _by_definition(tools: Iterable[Tool]) -> dict[_Telling, list[Tool]]:
    alike: dict[_Telling, list[Tool]] = defaultdict(list)
    for tool in tools:
        if tool.description or b'"properties"' in bytes(tool.input_schema):
            alike[tool.title, tool.description, bytes(tool.input_schema)].append(tool)
    return alike


def _without_name(tool: Tool) -> dict[str, object]:
    definition: dict[str, object] = msgspec.json.decode(tool.definition)
    definition.pop("name", None)
    return definition


_MAX_DEPTH: Final = 24
MAX_PARTS: Final = 100
"""Places of one change that are told; a definition that is another one altogether differs in thousands."""
_EITHER_SIDE: Final = 60
_LONGEST: Final = 400


class Part(msgspec.Struct, frozen=True):
    """One place that differs, as `inputSchema.properties.path`; a text is None where nothing was, or is, there."""

    place: str
    before: str | None
    after: str | None


def parts(before: bytes, after: bytes) -> list[Part]:
    """Return what differs, `MAX_PARTS` places at most, in their order by name."""
    return [*islice(_parts("", _read(before), _read(after)), MAX_PARTS)]


def differs(before: bytes, after: bytes) -> bool:
    return any(_parts("", _read(before), _read(after)))


def excerpts(before: str, after: str, most: int = _LONGEST) -> tuple[str, str]:
    """Return two texts, if over `most` characters long, as far as they differ, with some of what is around that."""
    longest = max(len(before), len(after))
    if longest <= most:
        return before, after
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    return _excerpt(before, start, end, most), _excerpt(after, start, end, most)


def _common(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _excerpt(text: str, start: int, end: int, most: int) -> str:
    first, last = max(0, start - _EITHER_SIDE), min(len(text), len(text) - end + _EITHER_SIDE)
    shown = text[first : min(last, first + most)]
    cut = first + len(shown) < len(text)
    return f"{'...' if first else ''}{shown}{'...' if cut else ''}"


def _read(definition: bytes) -> Any:
    return json.read_or(json.VALUE, definition, definition.decode(errors="replace"))


_NOTHING = object()


def _parts(place: str, before: Any, after: Any, depth: int = 0) -> Iterator[Part]:
    if isinstance(before, dict) and isinstance(after, dict) and depth < _MAX_DEPTH:
        for name in sorted(before.keys() | after.keys()):
            below = f"{place}.{name}" if place else name
            yield from _parts(below, before.get(name, _NOTHING), after.get(name, _NOTHING), depth + 1)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and depth < _MAX_DEPTH:
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _parts(f"{place}[{number}]", old, new, depth + 1)
    elif (was := _json(before)) != (is_now := _json(after)):
        yield Part(place, _text(before, was), _text(after, is_now))


def _json(value: Any) -> bytes | None:
    return None if value is _NOTHING else msgspec.json.encode(value, order="sorted")


def _text(value: Any, written: bytes | None) -> str | None:
    return value if isinstance(value, str) else None if written is None else written.decode()
