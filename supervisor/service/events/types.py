"""Event types at the doors of many servers (SEP-3415, "Listing Available Events"): what they are called there. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final, Literal

import msgspec

from actors.principal import LOCAL, Principal
from actors.protocol.definitions import fit
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.identity.people import Role
from supervisor.service.events.limits import MAX_LISTED, MAX_LISTED_BYTES
from supervisor.service.lookup.visible import Visible

Mode = Literal["poll", "push", "webhook"]
KEPT: Final[tuple[Mode, ...]] = ("poll", "push")
"""How every type is delivered here, however its source does it: what it pushes is kept, what it keeps is pushed."""
WEBHOOK: Final[Mode] = "webhook"
SEPARATOR: Final = ":"
"""Between the name of a server, which has none, and what that calls a type of its."""


class Viewpoint(msgspec.Struct, frozen=True):
    """Whose eyes events are looked at with: a principal, the role of its credential, and what is seen at its door."""

    principal: Principal
    visible: Visible
    role: Role = "member"

    @property
    def modes(self) -> tuple[Mode, ...]:
        """How it can have events: to an address only if it is known who asked for that."""
        return KEPT if self.principal == LOCAL else (*KEPT, WEBHOOK)

    @property
    def hears_all(self) -> bool:
        """Whether it hears everything that the daemon tells of itself, as at `/api/events`."""
        return self.principal == LOCAL or self.role != "member"


class EventType(msgspec.Struct, frozen=True):
    """One type. `name` is what it is called at these doors: that of its server, a colon, and its own.

    `definition` is the entry of `events/list` as its source has it, a JSON object; its name and its ways of delivery
    do not count.
    """

    name: str
    definition: msgspec.Raw

    def shown(self, modes: tuple[Mode, ...]) -> msgspec.Raw:
        """Return the entry for a client that can have events in these ways, as the schema of the extension has it."""
        entry = {**json.members(self.definition), "name": self.name, "delivery": modes}
        return fit(msgspec.Raw(encode(entry)), "events", "modern").definition


def event_name(server: str, own: str) -> str:
    return f"{server}{SEPARATOR}{own}"


def list_result(types: Iterable[EventType], modes: tuple[Mode, ...], cursor: str | None) -> bytes:
    """Return a page of `events/list`, a JSON object: the types by name, from behind the one that the cursor names.

    So a cursor means the same whatever came or went meanwhile.
    """
    left = sorted((each for each in types if cursor is None or each.name > cursor), key=attrgetter("name"))
    page: list[msgspec.Raw] = []
    size = 0
    for each in left[:MAX_LISTED]:
        size += len(each.definition)
        if page and size > MAX_LISTED_BYTES:
            break
        page.append(each.shown(modes))
    more = {"nextCursor": left[len(page) - 1].name} if len(page) < len(left) else {}
    return encode({"events": page, **more})
