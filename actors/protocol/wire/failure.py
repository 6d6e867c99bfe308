"""A request that is not answered by a message: the transport knows why. Pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Cause = Literal[
    "unavailable", "overloaded", "unauthorized", "forbidden", "refused", "expired", "crashed", "protocol", "too_large"
]
"""Why: nobody could be reached, or only somebody who is down (`unavailable`) or busy; who was reached wants a
credential, or one that allows more (`forbidden`), does not take such a request at all (`refused`), or has forgotten the
session (`expired`), and did nothing; what was sent was lost (`crashed`); what came is no answer (`protocol`), or over
its limit."""


OUTAGES: Final = frozenset[Cause]({"unavailable", "overloaded", "crashed"})
"""They say nothing about the server: it is tried again."""
GONE: Final = frozenset[Cause]({"unavailable", "crashed"})
"""After these a server that was there may be away altogether."""
FAULTS: Final = GONE | {"protocol"}
"""After these a request was not answered. Who is busy, says when it is back, wants a login or refuses has answered."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What comes in place of an answer. `id` is the JSON text of the id of the request, empty if what may be lost is
    about none: a server could tell nothing for a while.

    `reason` may reach clients. `sent`: the server may have carried the request out. `retry_after_s` is what it asks
    for. `login`: its operator can log in at the server, which would help. `stale`: nothing of it was done, and it may
    be refused only because the server does not know the present session any more. `said` is the message that came with
    it, empty for none: the answer, if the server does know the session.
    """

    id: bytes
    cause: Cause
    reason: str
    sent: bool = True
    retry_after_s: float | None = None
    login: bool = False
    stale: bool = False
    said: bytes = b""

    @property
    def unreached(self) -> bool:
        """Whether nobody was found who could have carried the request out."""
        return self.cause == "unavailable" and not self.sent

    @property
    def faulty(self) -> bool:
        """Whether the server, or the way there, failed; see `FAULTS`."""
        return self.cause in FAULTS and not self.login and not self.retry_after_s

    @property
    def too_often(self) -> bool:
        """Whether it came too often, and nothing of it was done: it may be made again, later (RFC 6585, 4)."""
        return self.cause == "overloaded" and not self.sent

    @property
    def bars(self) -> bool:
        """Whether the server takes nothing at all before a login."""
        return self.login and self.cause == "unauthorized"
