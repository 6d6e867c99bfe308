"""Which definitions of tools are approved, and what becomes of the others. Pure; the one place where that is decided.

- A definition is *pinned* when a server is seen for the first time: who configures a server trusts what it is then, as
  with the key of a host. What is suspicious (`Tool.alarms`, look-alikes) is never pinned by itself.
- What differs later, or is new, *waits* until somebody approves it, by its digest: so what is approved is what was
  seen. Where trust is `open`, everything but the suspicious is pinned as it comes, and people are told only of what was
  pinned once and has become suspicious (`to_tell`).
- Where trust is `strict`, what waits is *held*: nobody sees it, nobody calls it. `refusal` decides that for a call, and
  `judge` for everything else, by the same digests: held is what is not among the pins, whatever came in which order.
- A tool may have several approved definitions, as the copies of a remote server differ during an update. One that comes
  back to any of them needs no approval.
- What cannot be known is held: pins that could not be read are no first sight.

Pins are kept by the name that a server is configured by (`key_of`), so that a new version of its program is a change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Final, Literal, Protocol

import msgspec
from msgspec.structs import replace

from actors.catalogue.findings import quote
from actors.catalogue.lookalikes import Doubles
from actors.catalogue.marks import digest
from actors.catalogue.offer import Offer, Tool
from actors.command_line import command
from actors.errors import ToolHeld
from actors.launch import server_of

Trust = Literal["open", "notice", "strict"]
Reason = Literal["added", "changed", "suspicious", "unread"]

MAX_DIGESTS: Final = 64
"""Approved definitions of one tool, which may be another one for each user; the newest stay."""
_MAX_TOOLS: Final = 20_000
_MAX_BYTES: Final = 4 * 1024 * 1024
"""Of one server, of names and digests. Tools that are not offered go first; what has no room waits."""
_CHARACTER_BYTES: Final = 4
"""The most that one takes in UTF-8."""

_WHY: Final[Mapping[Reason, str]] = {
    "added": "it is new, and nobody has approved it",
    "changed": "its definition is another one than was approved",
    "suspicious": "its definition is suspicious, and nobody has approved it",
    "unread": "the daemon cannot read its database, so it does not know what was approved",
}


class Pins(msgspec.Struct, frozen=True):
    """The digests of approved definitions, by tool, the oldest first. That there are pins means: it was seen."""

    tools: dict[str, tuple[bytes, ...]] = {}

    def has(self, tool: str, pinned: bytes) -> bool:
        return pinned in self.tools.get(tool, ())

    def plus(self, approved: Mapping[str, bytes], offered: Collection[str]) -> Pins:
        """Return the pins with these too, within their bounds; `offered` are the names of tools that there are."""
        tools = {**self.tools, **{name: (pinned,) for name, pinned in approved.items()}}
        for name in self.tools.keys() & approved.keys():
            others = (each for each in self.tools[name] if each != approved[name])
            tools[name] = (*others, approved[name])[-MAX_DIGESTS:]
        return Pins(_within_bounds(tools, offered))


def key_of(server: str) -> str:
    """Return what the pins of a launch are kept by: its server, so that nobody approves the same for each user."""
    return server_of(server)


def _within_bounds(tools: dict[str, tuple[bytes, ...]], offered: Collection[str]) -> dict[str, tuple[bytes, ...]]:
    most = _CHARACTER_BYTES * sum(map(len, tools)) + sum(map(len, chain.from_iterable(tools.values())))
    if most <= _MAX_BYTES and len(tools) <= _MAX_TOOLS:  # nearly always, and this is done on the loop
        return tools
    size = sum(map(_cost, tools.items()))
    needless = (name for name in [*tools] if name not in offered)
    last = reversed([name for name in tools if name in offered])
    names = chain(needless, last)
    while size > _MAX_BYTES or len(tools) > _MAX_TOOLS:
        name = next(names)
        size -= _cost((name, tools.pop(name)))
    return tools


def _cost(pinned: tuple[str, tuple[bytes, ...]]) -> int:
    return len(pinned[0].encode(errors="replace")) + sum(map(len, pinned[1]))


class Judged(msgspec.Struct, frozen=True):
    """The pins after a reading, and which tools wait for approval, by the server's own names, and why."""

    pins: Pins | None
    waiting: Mapping[str, Reason] = {}


def judge(pins: Pins | None, tools: Iterable[Tool], trust: Trust, lookalikes: Collection[str] = ()) -> Judged:
    """Return what becomes of the tools that a server lists now; without pins they are seen for the first time.

    `lookalikes` are names that can be taken for tools of others. The tools are as the server has them.
    """
    first = pins is None
    known = pins or Pins()
    listed = {tool.name: tool for tool in tools}
    unknown = {
        name: pinned for name, tool in listed.items() if (pinned := digest(tool)) not in known.tools.get(name, ())
    }
    suspicious = {name for name in unknown if listed[name].alarms or name in lookalikes}
    if first or trust == "open":
        approved = {name: pinned for name, pinned in unknown.items() if name not in suspicious}
        known = known.plus(approved, listed) if approved else known
        unknown = {name: pinned for name, pinned in unknown.items() if pinned not in known.tools.get(name, ())}
    return Judged(known, {name: _reason(known, name, suspicious) for name in unknown})


class Foreseen(msgspec.Struct, frozen=True, eq=False):
    """What `judge` makes of a list, worked out beside the loop. It holds as long as it is still made of the same."""

    pins: Pins | None
    tools: tuple[Tool, ...]
    trust: Trust
    lookalikes: frozenset[str]
    judged: Judged

    @classmethod
    def of(cls, pins: Pins | None, tools: tuple[Tool, ...], trust: Trust, lookalikes: frozenset[str]) -> Foreseen:
        return cls(pins, tools, trust, lookalikes, judge(pins, tools, trust, lookalikes))

    def holds(self, pins: Pins | None, tools: tuple[Tool, ...], trust: Trust, lookalikes: Collection[str]) -> bool:
        same = self.pins is pins and self.tools is tools
        return same and (self.trust, self.lookalikes) == (trust, frozenset(lookalikes))


def judge_blindly(tools: Iterable[Tool]) -> Judged:
    """Return what becomes of tools while the pins could not be read: nothing is pinned."""
    return Judged(None, {tool.name: "unread" for tool in tools})


def to_tell(judged: Judged, trust: Trust) -> Mapping[str, Reason]:
    """Return which of the tools that wait somebody is told of: where trust is `open`, what has become suspicious."""
    return {name: why for name, why in judged.waiting.items() if trust != "open" or why == "changed"}


def _reason(pins: Pins, name: str, suspicious: Collection[str]) -> Reason:
    if name in pins.tools:
        return "changed"
    return "suspicious" if name in suspicious else "added"


def refusal(server: str, pins: Pins | None, tool: Tool, trust: Trust) -> ToolHeld | None:
    """Return why a call must not reach a tool as its server defines it now; None if it may. `pins`: None if unread."""
    if trust != "strict" or (pins is not None and pins.has(tool.name, digest(tool))):
        return None
    reason = "unread" if pins is None else _reason(pins, tool.name, {tool.name} if tool.alarms else ())
    return held_error(server, tool.name, reason)


class Standing(msgspec.Struct, frozen=True):
    """How the tools of a server stand: which wait, why, and whether they are held. `lookalikes` names their doubles.

    These are of all servers: who sees a tool may see none of its doubles. `unpinned` are all whose definition is not
    among the pins, also those of whose waiting nobody is told.
    """

    trust: Trust = "open"
    waiting: Mapping[str, Reason] = {}
    lookalikes: Doubles = {}
    unpinned: frozenset[str] = frozenset()

    @property
    def holds(self) -> bool:
        """Whether anything could be held: what clients see is not what the server itself would list."""
        return self.trust == "strict"

    @property
    def hold(self) -> Mapping[str, Reason]:
        return self.waiting if self.holds else {}

    def apply(self, offer: Offer) -> tuple[Offer, Mapping[str, Reason]]:
        """Return what clients see of an offer, and why they do not see the rest, by the names that it would have."""
        held = self.hold
        named = (
            {tool.name: held[own] for tool in offer.tools if (own := (tool.own or tool).name) in held} if held else {}
        )
        if not named:
            return offer, named
        tools = tuple(tool for tool in offer.tools if tool.name not in named)
        counts = {name: count for name, count in offer.token_counts.items() if name not in named}
        return replace(offer, tools=tools, token_counts=counts), named


TRUSTED: Final = Standing()


class PinKeeper(Protocol):
    """Who knows the pins of all servers."""

    def holds(self, server: str) -> bool:
        """Say whether tools of a server that are not approved are held."""

    def refusal(self, server: str, tool: Tool) -> ToolHeld | None:
        """Return why a call must not reach a tool as its server defines it now; None if it may."""


class Trusting:
    """Implements `PinKeeper` where everything is trusted."""

    def holds(self, server: str) -> bool:
        del server
        return False

    def refusal(self, server: str, tool: Tool) -> ToolHeld | None:
        del server, tool
        return None


TRUSTING: Final = Trusting()


def held_error(server: str, tool: str, reason: Reason) -> ToolHeld:
    """Return the error for a tool that waits for approval; `tool` is its name at the server."""
    text = (
        f"tool {quote(tool, 100)} of server {server!r} waits for approval: {_WHY[reason]}; nothing was called. "
        f"Tell the user: `{command('approve', server)}` shows what it is and approves it"
    )
    return ToolHeld(text, server=server, details={"reason": reason})


def redefined_error(server: str, tool: str) -> ToolHeld:
    """Return the error for a call that was for another definition than its server has now."""
    text = (
        f"tool {quote(tool, 100)} of server {server!r} was not called: the server defines it otherwise than when the "
        f"call was made; look for it again with discover_mcp_tools"
    )
    return ToolHeld(text, server=server, details={"reason": "changed"})


def unlisted_error(server: str, tool: str) -> ToolHeld:
    """Return the error for a call of a tool that was not among those which its server listed last."""
    text = (
        f"tool {quote(tool, 100)} of server {server!r} was not called: the server did not list it when its list was "
        f"read last, so what it is now is not known; look for it again with discover_mcp_tools"
    )
    return ToolHeld(text, server=server, details={"reason": "unlisted"})
