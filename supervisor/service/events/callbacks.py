"""Posts to addresses that clients name (SEP-3415, "Webhook security"): they must not reach by us
what only we can reach.

- Only `https`; a name is looked up for each message, all of its addresses must be out in the world, and the connection
  goes to one of these. Origins that the operator allows may be anywhere. TLS is verified against the name.
- No redirect is followed, no cookie kept, no proxy of the environment used: that would look names up by itself. Each
  message has a connection of its own, as kept ones are told apart by address, and names share these.
- Of an answer its status counts, and of one to a challenge a few bytes. Nothing of it is told to anybody, nor why
  exactly an address cannot be reached: only one of the categories of the extension.
- So many are posted at a time for one host, for one principal, and in all; the rest waits.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import trio

from actors.kit.fairness.share import LinePace, LoopShare, share_of
from actors.principal import Principal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.transport.border import Border
from actors.transport.redaction import Confidential
from supervisor.events.event import sign
from supervisor.host.loading import preload
from supervisor.host.workbench import beside
from supervisor.oauth.issuers.metadata import origin
from supervisor.service.events.limits import (
    CALLBACK_S,
    MAX_POSTS,
    MAX_POSTS_OF_HOST,
    MAX_POSTS_OF_PRINCIPAL,
    VERIFICATIONS_OF_HOST,
    VERIFICATIONS_OF_PRINCIPAL,
    VERIFY_S,
    CallbackUnusable,
    Reason,
    TooManyEvents,
    Undelivered,
)

_REFUSED: Final = frozenset({410, 413})
"""What says that this one message is not to be sent again."""
_MAX_ECHO_BYTES: Final = 4096
_MAX_PACES: Final = 4096
_SAID: Final[Mapping[Reason, str]] = {
    "connection_refused": "nothing answers there, or it is no address of the public internet, which only the operator "
    "can allow (webhook_origins)",
    "timeout": f"there is no answer within {CALLBACK_S:g} s",
    "tls_error": "its certificate is not trusted for its name, or it speaks no TLS",
    "http_4xx": "it refuses what is posted",
    "http_5xx": "it fails",
    "challenge_failed": "it did not answer with the challenge that was posted to it",
}


class Receiver(Confidential, msgspec.Struct, frozen=True):
    """Who is posted to, and for whom. `keys` sign, the newest first; `id` is that of the subscription."""

    principal: Principal
    url: str
    id: str
    keys: tuple[bytes, ...]

    @property
    def host(self) -> str:
        return (urlsplit(self.url).hostname or "").rstrip(".")


class Answer(NamedTuple):
    """What counts of an answer."""

    status: int
    body: bytes
    retry_after_s: float

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


class Callbacks:
    """Posts for all subscriptions. `allowed` gives the origins that may be anywhere, `clock` unix seconds."""

    def __init__(self, allowed: Callable[[], Collection[str]], clock: Callable[[], float]) -> None:
        self._allowed = allowed
        self._clock = clock
        self._posts = trio.CapacityLimiter(MAX_POSTS)
        self._of_hosts = Limiters(MAX_POSTS_OF_HOST)
        self._of_principals = Limiters(MAX_POSTS_OF_PRINCIPAL)
        self._paces: OrderedDict[str, LinePace] = OrderedDict()
        self._border = Border("a callback address")
        self._loaded = False

    async def deliver(self, receiver: Receiver, message_id: str, body: bytes) -> None:
        """Post a message, a JSON object. Raises `Undelivered`."""
        answer = await self._post(receiver, message_id, body, 0)
        if not answer.good:
            reason: Reason = "http_5xx" if answer.status >= 500 else "http_4xx"
            raise Undelivered(reason, final=answer.status in _REFUSED, retry_after_s=answer.retry_after_s)

    async def verify(self, receiver: Receiver) -> None:
        """Have an address confirm that it wants what is posted. Raises `CallbackUnusable`, `TooManyEvents`."""
        self._count_verification(f"principal {receiver.principal}", VERIFICATIONS_OF_PRINCIPAL)
        self._count_verification(f"host {receiver.host}", VERIFICATIONS_OF_HOST)
        challenge = secrets.token_urlsafe(32)
        body = encode({"type": "verification", "challenge": challenge})
        answer = None
        with trio.move_on_after(VERIFY_S):
            try:
                answer = await self._post(receiver, message_id("verification"), body, _MAX_ECHO_BYTES)
            except Undelivered as failure:
                raise CallbackUnusable(failure.reason, _SAID[failure.reason]) from None
        if answer is None:
            text = "too much is posted to that host or for you, so it was not asked to confirm; try again later"
            raise TooManyEvents(text, "posts")
        echoed = json.text_at(answer.body, "challenge").encode()
        if not (answer.good and hmac.compare_digest(echoed, challenge.encode())):
            raise CallbackUnusable("challenge_failed", _SAID["challenge_failed"])

    def _count_verification(self, whose: str, most: int) -> None:
        """Raise `TooManyEvents` where there were so many in the last minute."""
        pace = self._paces.pop(whose, None) or LinePace(most / 60, most)
        self._paces[whose] = pace
        if len(self._paces) > _MAX_PACES:
            self._paces.popitem(last=False)
        now = trio.current_time()
        if pace.rest_s(now) > 0:
            text = "too many callback addresses were to be verified just now; try again in a minute"
            raise TooManyEvents(text, "verifications", most)
        pace.take(1, now)

    async def _post(self, receiver: Receiver, id_: str, body: bytes, limit: int) -> Answer:
        """Return an answer, with its body as far as that is within the limit. Raises `Undelivered`."""
        async with (
            self._of_principals.use(receiver.principal),
            self._of_hosts.use(receiver.host),
            self._posts,
        ):
            with trio.move_on_after(CALLBACK_S):
                return await self._ask(receiver, id_, body, limit)
        raise Undelivered("timeout")

    async def _ask(self, receiver: Receiver, id_: str, body: bytes, limit: int) -> Answer:
        if not self._loaded:  # most daemons never post anything
            await beside(partial(preload, remote=True))
            self._loaded = True
        share = share_of(f"callbacks to {receiver.host}")
        return await share.run(self._ask_in_turn, share, receiver, id_, body, limit)

    async def _ask_in_turn(self, share: LoopShare, receiver: Receiver, id_: str, body: bytes, limit: int) -> Answer:
        from supervisor.service.events.callback_request import post

        free = origin(receiver.url) in {origin(each) for each in self._allowed()}
        try:
            headers = self._signed(receiver, id_, body)
            return Answer(*await post(receiver.url, headers, body, share, limit=limit, anywhere=free))
        except Undelivered:
            raise
        except Exception as error:  # noqa: BLE001 - the border: what an endpoint sends ends nothing
            self._border.unforeseen(error)
            raise Undelivered("connection_refused") from None

    def _signed(self, receiver: Receiver, id_: str, body: bytes) -> dict[str, str]:
        moment = int(self._clock())
        signed = [sign(key, id_, moment, body) for key in receiver.keys]
        signatures = " ".join(each["webhook-signature"] for each in signed)
        return {
            **signed[0],
            "webhook-signature": signatures,
            "x-mcp-subscription-id": receiver.id,
            "content-type": "application/json",
        }


def message_id(type_: str) -> str:
    """Return the id of a message that is no event, by which a receiver knows one that comes again."""
    return f"msg_{type_}_{secrets.token_hex(16)}"


class Limiters:
    """A limiter for each of those that somebody uses."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._used: dict[str, tuple[trio.CapacityLimiter, int]] = {}

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[None]:
        limiter, users = self._used.get(name) or (trio.CapacityLimiter(self._tokens), 0)
        self._used[name] = limiter, users + 1
        try:
            async with limiter:
                yield
        finally:
            limiter, users = self._used.pop(name)
            if users > 1:
                self._used[name] = limiter, users - 1
