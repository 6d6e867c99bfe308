"""How much events may take: of memory, of the disk, of others' time. Pure.

What there is no room for is refused with `TooManyEvents`; that something is not kept any more is said (`truncated`).
"""

from __future__ import annotations

from typing import Final

MAX_TOPICS: Final = 512
"""Topics that are followed at a time; principals share them."""
MAX_TOPICS_OF_SERVER: Final = 192
"""Of one launch of a server, which has 256 streams: the rest is for those at its own door."""
MAX_STREAMS: Final = 512
"""Open streams of clients; principals share them. Most have a connection each: others must find some, too."""
MAX_ARGUMENTS_BYTES: Final = 64 * 1024
"""Of the arguments of a subscription."""
MAX_EVENT_BYTES: Final = 256 * 1024
"""Of one occurrence (SEP-3415, "Delivery profile")."""
MAX_ID_CHARS: Final = 1024
"""Of the id of an event."""
MAX_CURSOR_CHARS: Final = 16 * 1024
"""Of a cursor of a server, which is kept for as long as its topic is."""
MAX_KEPT: Final = 1000
"""Occurrences that are kept of a topic."""
MAX_KEPT_BYTES: Final = 4 * 1024 * 1024
"""Of all that is kept of a topic."""
MAX_LOGS: Final = 1024
"""Topics of which the newest is kept in memory, followed or not."""
MAX_ALL_BYTES: Final = 64 * 1024 * 1024
"""Of all that is kept in memory; where there is more, half of what the largest topic has is forgotten."""
MAX_LISTED: Final = 500
MAX_LISTED_BYTES: Final = 512 * 1024
"""Event types on a page of their list, and the bytes of their definitions."""
MAX_POLLED: Final = 100
"""Events in one answer to a poll."""
MAX_READ_BYTES: Final = 1024 * 1024
"""Of the events that are read at a time; one of any size is."""
LINGER_S: Final = 60.0
"""So long a topic is followed that nobody holds; or for three times until the next poll, if that is more."""
HEARTBEAT_S: Final = 15.0
"""Between two signs of life on a stream, whatever else is told: half of what the extension asks for."""
STALLED_S: Final = 30.0
"""So long a client may not take what it is sent on a stream, before it loses it."""
POLL_MS: Final = 5000
"""When a client should ask again for what its server pushes."""

# Webhooks ------------------------------------------------------------------------------------------------------------

MAX_WEBHOOKS: Final = 4096
"""Subscriptions whose events are posted; principals share them."""
MAX_WEBHOOKS_OF_PRINCIPAL: Final = 256
"""Of one principal."""
DEFAULT_TTL_S: Final = 3600.0
"""So long a subscription holds whose client says nothing of it."""
MIN_TTL_S: Final = 300.0
MAX_TTL_S: Final = 86_400.0
"""No subscription holds shorter, or longer, than that without being refreshed (SEP-3415, "Subscription TTL")."""
ROTATION_S: Final = 600.0
"""So long what is posted is signed by the secret of before, too."""
VERIFIED_S: Final = 3600.0
"""So long an address that was verified is not verified again for the same principal, though no subscription is left."""
VERIFICATIONS_OF_PRINCIPAL: Final = 10
VERIFICATIONS_OF_HOST: Final = 20
"""Addresses that are verified in a minute for one principal, and at one host."""
MAX_ATTEMPTS: Final = 5
"""So often one event is posted, with growing pauses, within `RETRY_S`."""
RETRY_S: Final = 900.0
MAX_BODY_BYTES: Final = 256 * 1024
"""Of what is posted (SEP-3415, "Delivery profile")."""
MAX_IN_FLIGHT: Final = 4
"""Events of one subscription that are posted, or wait to be posted again: each is a task, of some 6 kB."""
MAX_POSTS: Final = 64
MAX_POSTS_OF_HOST: Final = 8
MAX_POSTS_OF_PRINCIPAL: Final = 16
"""Messages that are posted at a time: in all, to one host, for one principal."""
CALLBACK_S: Final = 10.0
"""So long an address may take for its answer, all included."""
VERIFY_S: Final = 3 * CALLBACK_S
"""So long somebody waits at most until an address has confirmed what it is asked, all before it included."""
CALLBACK_CONNECT_S: Final = 5.0
