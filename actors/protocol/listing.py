"""Walking the lists of a server page by page, without I/O.

Bounds, so that no server can keep us walking: entries and bytes of each list, and the time of the walk; and the walk of
one list ends when a page brings nothing new. Conclusions are never drawn from the cursors themselves (the specification
forbids it); an empty string is a valid cursor. A list that was not read to its end is `missing`, and it is said why.
A server that announces no list at all is asked for tools: some have them and say nothing.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from actors.protocol.agreement.capabilities import EVENTS, SKETCHED
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.fragment import DecodedLine, text_of

ItemKind = Literal["tools", "resources", "templates", "prompts", "skills"]
"""What a door lists as servers listed it."""
Kind = ItemKind | Literal["events"]
SKILLS = "io.modelcontextprotocol/skills"
"""The extension by which a server says that it lists skills (SEP-2640)."""

METHODS: dict[Kind, str] = {
    "tools": "tools/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
    "prompts": "prompts/list",
    "skills": "skills/list",
    "events": "events/list",
}
LISTED_BY: dict[str, ItemKind] = {METHODS[kind]: kind for kind in get_args(ItemKind)}
MEMBERS: dict[Kind, str] = {**{kind: kind for kind in METHODS}, "templates": "resourceTemplates"}
"""What the list is called in a result."""
CAPABILITIES: dict[Kind, str] = {
    **{kind: kind for kind in METHODS},
    "templates": "resources",
    "skills": SKILLS,
    "events": EVENTS,
}
"""What announces each list: a capability, or an extension."""
_GOES_ON = frozenset(bytes([byte]) for byte in b"0123456789.eE")
"""What makes another number of one."""
_END_BYTES = 256
"""An answer has its id in front of its result or behind it."""


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """How often all lists of a server were read since its actor began: `count` times to the end, the last time at
    `last_at`, which took `last_s`. `failures` took too long, brought no list of tools where one was announced, or ended
    with their process. Seconds of one clock.
    """

    count: int = 0
    failures: int = 0
    last_at: float | None = None
    last_s: float | None = None


class ListLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one walk over the lists of a server may cost.

    `max_entries` of each list; `max_bytes` of tools, and a quarter of it of each other list, so that none takes the
    room of the tools; after `max_s` seconds no further page is asked for.
    """

    max_entries: int = 10_000
    max_bytes: int = 32 * 1024 * 1024
    max_s: float = 30.0

    def bytes_of(self, kind: Kind) -> int:
        return self.max_bytes if kind == "tools" else self.max_bytes // 4


class PageArrived(msgspec.Struct, frozen=True):
    """A message that answers a request for a page of a list, unread: reading it may take long.

    `id` is the JSON text of the id it must have; None if that was seen already. `failure`: why it cannot be read.
    """

    kind: Kind
    message: bytes | DecodedLine
    id: bytes | None
    failure: str = ""

    @property
    def line(self) -> bytes:
        return text_of(self.message)


class PageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk must know of a page that was read: whether it brought anything new, and why the list ends here."""

    fresh: bool = False
    cursor: str | None = None
    cut: str = ""
    failure: str = ""


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """How a walk ended. `missing`: lists that could not be had to their end; `problems` say why, for operators.

    `circular`: lists that were, but whose pages go on with nothing new. `lost`: why a page did not arrive, empty if all
    did. `again_s`: a list was asked for too often, and may be in so many seconds; None if none was. `failure`: why the
    list of tools could not be had, empty if it was, or as far as there is room for it.
    """

    missing: frozenset[Kind] = frozenset()
    circular: frozenset[Kind] = frozenset()
    problems: tuple[str, ...] = ()
    lost: str = ""
    again_s: float | None = None
    failure: str = ""


class ListWalk:
    """One walk over every list that the server's capabilities announce. `now` is in seconds of any steady clock."""

    def __init__(self, capabilities: msgspec.Raw, limits: ListLimits, now: float) -> None:
        declared = capability_names(capabilities)
        self._limits = limits
        self._begun = now
        self._open: set[Kind] = {kind for kind in METHODS if CAPABILITIES[kind] in declared}
        self._open |= {"events"} if SKETCHED in declared else set()
        self._unannounced = not self._open - {"events"}
        self._open |= {"tools"} if self._unannounced else set()
        self._missing: set[Kind] = set()
        self._circular: set[Kind] = set()
        self._problems: list[str] = []
        self._ids: dict[Kind, bytes] = {}
        self._arrived: set[Kind] = set()
        self._failure = ""
        self.lost = ""
        self.again_s: float | None = None

    @property
    def done(self) -> bool:
        return not self._open

    def expect(self, kind: Kind, id_: bytes) -> None:
        """Note the id, as JSON text, under which the next page of a list was asked for."""
        self._ids[kind] = id_
        self._arrived.discard(kind)

    def recognise(self, message: bytes | DecodedLine) -> PageArrived | None:
        """Tell a page by its id alone: it may be large, and one bad entry of it must not cost the others."""
        line = text_of(message)
        ends = line[:_END_BYTES] + line[-_END_BYTES:]
        for kind, id_ in self._ids.items():
            if kind not in self._arrived and _has_id(ends, id_):
                self._arrived.add(kind)
                return PageArrived(kind, message, id_)
        return None

    def take(self, kind: Kind, message: bytes | DecodedLine, failure: str = "") -> PageArrived | None:
        """Take an answer whose id was written in an unusual place or way; None if there was one already.

        `failure` says why it cannot be read.
        """
        if kind in self._arrived:
            return None
        self._arrived.add(kind)
        return PageArrived(kind, message, None, failure)

    def expect_again(self, kind: Kind) -> None:
        """What was recognised as a page of that list is none."""
        self._arrived.discard(kind)

    def on_page(self, kind: Kind, page: PageSummary, now: float) -> tuple[Kind, bytes] | None:
        if page.failure:
            self.on_failure(kind, page.failure)
            return None
        more = page.cursor is not None and page.fresh
        if page.cursor is not None and not page.fresh:
            self._circular.add(kind)
        late = more and now - self._begun > self._limits.max_s
        if page.cut or late:
            self._missing.add(kind)
            reached = page.cut or f"{self._limits.max_s:g} s"
            self._problems.append(f"{METHODS[kind]}: cut at {reached}; the server has more")
        elif more:
            return kind, jsonrpc.encode({"cursor": page.cursor})
        self._open.discard(kind)
        return None

    def on_failure(self, kind: Kind, reason: str) -> None:
        """The list of that kind could not be had to its end; what came before is kept."""
        self._open.discard(kind)
        if self._unannounced and kind == "tools":
            return
        self._missing.add(kind)
        if kind == "tools":
            self._failure = f"{METHODS[kind]}: {reason}"
        if kind != "templates":  # many servers declare resources and have no templates/list
            self._problems.append(f"{METHODS[kind]}: {reason}")

    def waits_for(self, kind: Kind) -> bool:
        return kind in self._open

    def give_up(self, seconds: float) -> None:
        for kind in METHODS:
            if kind in self._open:
                self.on_failure(kind, f"not answered within {seconds:g} s")

    def result(self) -> Listed:
        return Listed(
            missing=frozenset(self._missing),
            circular=frozenset(self._circular),
            problems=tuple(self._problems),
            lost=self.lost,
            again_s=self.again_s,
            failure=self._failure,
        )


def capability_names(capabilities: msgspec.Raw) -> frozenset[str]:
    """Return capabilities and extensions that are declared, whatever their value (`{}` counts, `null` does not)."""
    declared = json.members(capabilities)
    both = (*declared.items(), *json.members(declared.get("extensions")).items())
    return frozenset(key for key, value in both if bytes(value) != b"null")


def _has_id(text: bytes, id_: bytes) -> bool:
    values = (part.lstrip(b" \t:") for part in text.split(b'"id"')[1:])
    return any(value.startswith(id_) and value[len(id_) : len(id_) + 1] not in _GOES_ON for value in values)
