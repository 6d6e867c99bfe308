"""What is said to a server: a message, and what a transport has to know of it beside its text. Pure."""

from __future__ import annotations

import msgspec

from actors.protocol.wire.mirrors import Mirror


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """One message. `parts` are its JSON text, cut anywhere; they may be large, and are joined once, by the transport.

    `id` is the JSON text of its id, empty for a notification. `name` is the tool, the prompt or the URI that a request
    is about, `mirrors` which of its arguments a head repeats. `version` is the revision of the protocol in which it is
    written, empty where none was agreed on. `cancels` is the id of the request that this notification takes back: a
    transport whose requests have streams of their own closes that one instead.
    """

    parts: tuple[bytes, ...]
    method: str = ""
    id: bytes = b""
    name: str = ""
    version: str = ""
    cancels: bytes = b""
    mirrors: tuple[Mirror, ...] = ()

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)
