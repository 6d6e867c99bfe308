"""Where occurrences come from: a source has types, and follows topics of them. Pure.

A topic is one event type with some arguments, as one launch of a server has it; who wants the same shares it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Protocol

import msgspec

from actors.principal import LOCAL, Principal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, encode
from supervisor.service.events.types import EventType, Viewpoint

_ID_BYTES = 16


class Origin(msgspec.Struct, frozen=True):
    """What a topic is of.

    `name` is that of its type at the doors of many servers, `own` what its source calls it. `launch` is that of its
    server, empty for the daemon's own events. `arguments` are a JSON object in one form (`canonical`). `timeout_s`: how
    long whoever begins to follow it waits at most until its source has confirmed it. `opener` is who asks.
    """

    name: str
    launch: str
    own: str
    arguments: bytes
    timeout_s: float = 60.0
    opener: Principal = LOCAL

    @property
    def id(self) -> str:
        """The same for the same launch, type and arguments, whoever asks, and in each life of the daemon."""
        return hashlib.blake2b(encode([self.launch, self.own]) + self.arguments, digest_size=_ID_BYTES).hexdigest()


class Terminated(Exception):
    """The source does not have this topic (any more), and says so by an error of the extension: NotFound, Forbidden,
    Unsupported, or InvalidParams."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(error.message)
        self.error = error


class Told(Protocol):
    """Who is told of a topic. Neither waits nor raises.

    A `cursor` is the source's own: where it goes on from later. None: it cannot be asked for what was before.
    """

    def active(self, cursor: str | None, *, truncated: bool) -> None:
        """It is followed from now on; `truncated`: some of what happened since the given cursor is missing.

        Told again whenever there was a gap.
        """

    def event(self, occurrence: msgspec.Raw, cursor: str | None) -> None:
        """Something happened: an `EventOccurrence`, a JSON object as its source wrote it."""

    def checked(self, cursor: str | None) -> None:
        """Nothing else happened until now."""

    def error(self, error: ErrorObject) -> None:
        """Something could not be had for the moment; it goes on."""

    def asked_every(self, milliseconds: int) -> None:
        """The source is asked so often, so nobody needs to ask more often for what it says."""


class Source(Protocol):
    """Some event types, and the topics of these."""

    def types(self, at: Viewpoint) -> Iterable[EventType]:
        """Return the types that somebody sees, always in the same order."""

    def find(self, at: Viewpoint, name: str, arguments: bytes) -> Origin | None:
        """Return what a type with arguments is, by its name at these doors; None if somebody sees no such type here.

        Raises `SupervisorError` where it cannot be followed for them now.
        """

    async def follow(self, origin: Origin, cursor: str | None, told: Told) -> None:
        """Follow a topic from a cursor of its own, or from now on, until that is cancelled.

        Before it has been `active`, it raises why it cannot be: `Terminated`, `RemoteError`, `SupervisorError`.
        Afterwards it begins again by itself whatever happens, from the last cursor, and raises nothing but
        `Terminated`. A checkpoint.
        """


def canonical(arguments: msgspec.Raw) -> bytes:
    """Return a JSON value in one form: without white space, members sorted by name, numbers and texts as written."""
    text = bytes(arguments).strip()
    if text[:1] == b"{":
        members = sorted(json.read(json.MEMBERS, text).items())
        return b"{%b}" % b",".join(encode(name) + b":" + canonical(value) for name, value in members)
    if text[:1] == b"[":
        return b"[%b]" % b",".join([canonical(each) for each in json.read(json.ELEMENTS, text)])
    return text
