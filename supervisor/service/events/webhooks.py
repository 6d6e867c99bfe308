"""Subscriptions whose events are posted to an address (SEP-3415, "Webhook-Based Delivery").

- A subscription is who asked, for what, to which address: whoever asks for the same again refreshes it. It lasts for a
  time that is granted, also across restarts of the daemon, and ends without a word when nobody refreshes it.
- It begins once its address has confirmed that it wants it, which holds for all that its principal has posted there.
- What its principal may have is looked up before each message, as it is then, and whenever it may have changed; where
  that is nothing any more, it ends.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import trio

from actors.errors import InvalidArguments, MalformedRequest, ShuttingDown, Starved, SupervisorError, forget_frames
from actors.kit import Pauses, Shares, Signal
from actors.principal import LOCAL, Principal
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError, encode
from actors.transport.http.addresses import plain
from actors.transport.redaction import Confidential
from supervisor.events.event import PREFIX, key_of, timestamp
from supervisor.host.pauses import Bell
from supervisor.identity.audit import NO_AUDIT, Audit
from supervisor.operations import Role
from supervisor.service.events.callbacks import Callbacks, Limiters, Receiver
from supervisor.service.events.limits import (
    DEFAULT_TTL_S,
    FINAL,
    MAX_TTL_S,
    MAX_WEBHOOKS,
    MAX_WEBHOOKS_OF_PRINCIPAL,
    MIN_TTL_S,
    REMOVED,
    REVOKED,
    ROTATION_S,
    VERIFIED_S,
    PrincipalNeeded,
    TooManyEvents,
    UnknownEvent,
    UnknownSubscription,
    UnsupportedDelivery,
)
from supervisor.service.events.posting import Health, Poster, Posting
from supervisor.service.events.requests import Wanted
from supervisor.service.events.sources import WEBHOOK, Viewpoint
from supervisor.service.events.topics import Topic, Topics, checked
from supervisor.store import Rows
from supervisor.store.records import SavedWebhook

if TYPE_CHECKING:
    from supervisor.store.sealing import Sealing


# What clients ask for of a subscription whose events are posted, and what is kept of it (SEP-3415).

MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64
"""Of what is behind `whsec_` ("Secret generation")."""


class _Address(Confidential, msgspec.Struct, frozen=True):
    url: str
    mode: str = WEBHOOK
    secret: str = ""


class Subscribe(Confidential, Wanted, frozen=True, rename="camel", kw_only=True):
    """The params of `events/subscribe`, and of `events/unsubscribe`."""

    delivery: _Address
    ttl_ms: int | msgspec.UnsetType | None = msgspec.UNSET


_subscribe: Final = msgspec.json.Decoder(Subscribe)


class Terms(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """What a subscription is, as it is kept. `before` is the secret that was replaced at `rotated_at` (unix s).

    `role` is that of the credential with which it was begun: the most that it is for.
    """

    principal: Principal
    role: Role = "member"
    url: str
    name: str
    arguments: msgspec.Raw
    secret: str
    before: str = ""
    rotated_at: float = 0.0

    def secrets(self, now: float) -> list[str]:
        """Return what is signed by, the newest first."""
        return [self.secret, self.before] if self.before and now < self.rotated_at + ROTATION_S else [self.secret]

    def rotated(self, secret: str, now: float) -> Terms:
        if secret == self.secret:
            return self
        return msgspec.structs.replace(self, secret=secret, before=self.secret, rotated_at=now)


def granted_s(ttl_ms: int | msgspec.UnsetType | None) -> float:
    """Return for how long a subscription is granted whose client suggests so much (null: for ever).

    None is granted for ever: what nobody refreshes must end by itself.
    """
    if ttl_ms is None:
        return MAX_TTL_S
    if ttl_ms is msgspec.UNSET:
        return DEFAULT_TTL_S
    return min(max(ttl_ms, MIN_TTL_S * 1000), MAX_TTL_S * 1000) / 1000


def read_subscribe(at: Viewpoint, params: msgspec.Raw, method: str) -> Subscribe:
    """Read what somebody asks for by a method.

    Raises `PrincipalNeeded`, `MalformedRequest`, `UnsupportedDelivery`, and `InvalidArguments` for a bad address.
    """
    if at.principal == LOCAL:
        raise PrincipalNeeded
    try:
        wanted = json.read(_subscribe, params)
    except json.UnreadableJson as error:
        raise MalformedRequest(f"{method}: {error}") from None
    if wanted.delivery.mode != WEBHOOK:
        text = f"{method} is for the delivery mode {WEBHOOK!r} alone"
        raise UnsupportedDelivery(text, feature="deliveryMode", value=wanted.delivery.mode[:100])
    parts = plain(wanted.delivery.url)
    if parts is None or parts.scheme != "https" or parts.fragment:
        raise InvalidArguments("'delivery.url' is not a plain address of https, such as https://example.com/hooks/1")
    return wanted


def check_secret(secret: str) -> None:
    """Raise `InvalidArguments` for what is no secret of Standard Webhooks."""
    try:
        size = len(base64.b64decode(secret.removeprefix(PREFIX), validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if not (secret.startswith(PREFIX) and MIN_SECRET_BYTES <= size <= MAX_SECRET_BYTES):
        text = f"'delivery.secret' is not {PREFIX} and {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} random bytes in base64"
        raise InvalidArguments(text)


log = logging.getLogger(__name__)

OPEN_S: Final = 5.0
"""So long a request waits at most until what was kept has been read."""
READ_AGAIN_S: Final = 5.0
AGAIN_S: Final = (1.0, 60.0)
"""Between two attempts to follow a topic that cannot be followed for now, at first and at most."""
STABLE_S: Final = 60.0
"""What went well for so long is begun again soon."""
RIGHTS_S: Final = 60.0
"""So often it is looked whether rights are over of which nobody is told, as those of a token that expires."""
MAX_VERIFIED: Final = 4096


class Subscription:
    """One of them. `expires_at` in unix seconds; `cursor` is where it goes on; `posting` does so while it can.

    `scope` is all that is done for it, `attempt` what is done while its topic is followed.
    """

    def __init__(self, id_: str, terms: Terms, expires_at: float, cursor: str, health: Health) -> None:
        self.id = id_
        self.terms = terms
        self.expires_at = expires_at
        self.cursor = cursor
        self.health = health
        self.posting: Posting | None = None
        self.topic: Topic | None = None
        self.scope: trio.CancelScope | None = None
        self.attempt = trio.CancelScope()


class Webhooks:
    """All of them, once it runs. `key` seals what is kept, and makes ids that nobody can guess by.

    `view` gives what a principal sees now, in a role at most, None if it is nobody any more; `whole` is what there is.
    `changes` says when that may have changed. `clock` gives unix seconds.
    """

    def __init__(
        self,
        topics: Topics,
        callbacks: Callbacks,
        store: Rows[SavedWebhook],
        key: bytes,
        view: Callable[[Principal, Role], Awaitable[Viewpoint | None]],
        whole: Viewpoint,
        changes: Signal,
        clock: Callable[[], float],
        audit: Audit = NO_AUDIT,
    ) -> None:
        self._topics = topics
        self._changes = changes
        self._audit = audit
        self._callbacks = callbacks
        self._store = store
        self._key = key
        self._view = view
        self._whole = whole
        self._clock = clock
        self._all: dict[str, Subscription] = {}
        self._shares = Shares(MAX_WEBHOOKS)
        self._verified: OrderedDict[tuple[Principal, str], float] = OrderedDict()
        self._turns = Limiters(1)
        self._read = False
        self._opened = trio.Event()
        self._closing = trio.Event()
        self._nursery: trio.Nursery | None = None

    @cached_property
    def _sealing(self) -> Sealing:
        from supervisor.store.sealing import Sealing

        return Sealing(self._key)

    # What clients ask for ---------------------------------------------------------------------------------------------

    async def subscribe(self, at: Viewpoint, params: msgspec.Raw) -> dict[str, Any]:
        """Begin a subscription, or refresh it; return the members of the result.

        Raises as `Topics.hold` does, `PrincipalNeeded`, `InvalidArguments`, `CallbackUnusable`. A checkpoint.
        """
        wanted = read_subscribe(at, params, "events/subscribe")
        check_secret(wanted.delivery.secret)
        arguments = checked(wanted.arguments)
        id_ = self._id_of(at.principal, wanted, arguments)
        await self._wait_opened()
        async with self._turns.use(id_):
            known = self._all.get(id_)
            if known is None:
                known, truncated = await self._begin(id_, at, wanted, arguments)
                status = None
            else:
                self._check_allowed(at, known)
                truncated, status = False, known.health.status()
                self._refresh(known, wanted)
            await self._store.keep()
        result = {
            "id": id_,
            "refreshBefore": timestamp(known.expires_at),
            "cursor": known.cursor,
            "truncated": truncated,
        }
        return result if status is None else {**result, "deliveryStatus": status}

    async def unsubscribe(self, at: Viewpoint, params: msgspec.Raw) -> dict[str, Any]:
        """End a subscription: nothing is posted any more. Raises `UnknownSubscription`, and as above."""
        wanted = read_subscribe(at, params, "events/unsubscribe")
        id_ = self._id_of(at.principal, wanted, checked(wanted.arguments))
        await self._wait_opened()
        async with self._turns.use(id_):
            if (known := self._all.get(id_)) is None:
                raise UnknownSubscription
            self._forget(known)
            self._audit.tally("webhook.unsubscribe", known.terms.name, outcome="done", detail=self._shown(known))
            await self._store.keep()
        return {}

    def _id_of(self, principal: Principal, wanted: Subscribe, arguments: bytes) -> str:
        """Return the id of a subscription: the same for the same key ("Subscription identity")."""
        parts = encode([principal, wanted.delivery.url, wanted.name, arguments.decode("latin-1")])
        return f"sub_{hmac.digest(self._key, parts, hashlib.sha256).hex()[:32]}"

    async def _wait_opened(self) -> None:
        with trio.move_on_after(OPEN_S):
            await self._opened.wait()
        if self._closing.is_set():
            raise ShuttingDown
        if self._nursery is None:
            text = "the daemon has not read yet which subscriptions there are, see /api/status; try again"
            raise Starved(text, outcome="not_sent")

    def _check_allowed(self, at: Viewpoint, known: Subscription) -> None:
        at = msgspec.structs.replace(at, role=known.terms.role)
        if known.topic is not None and not self._topics.allowed(at, known.topic):
            raise UnknownEvent(known.terms.name)

    def _refresh(self, known: Subscription, wanted: Subscribe) -> None:
        now = self._clock()
        known.terms = known.terms.rotated(wanted.delivery.secret, now)
        known.expires_at = now + granted_s(wanted.ttl_ms)
        if known.scope is not None:
            known.scope.deadline = self._deadline_of(known)
        known.health.resume()
        self._save(known)

    async def _begin(self, id_: str, at: Viewpoint, wanted: Subscribe, arguments: bytes) -> tuple[Subscription, bool]:
        """Return a new one, and whether it begins later than its client wants."""
        principal = at.principal
        self._check_room(principal)
        self._shares.add(principal)
        try:
            async with self._topics.hold(at, wanted.name, msgspec.Raw(arguments)) as topic:
                terms = Terms(
                    principal=principal,
                    role=at.role,
                    url=wanted.delivery.url,
                    name=wanted.name,
                    arguments=msgspec.Raw(arguments),
                    secret=wanted.delivery.secret,
                )
                await self._verify(self._receiver(id_, terms))
                if self._nursery is None:
                    raise ShuttingDown
                number, floor = wanted.begin(topic, self._clock())
                reading = topic.after(number, 1, floor)
                behind = reading.events[0].number - 1 if reading.events else reading.head
                expires_at = self._clock() + granted_s(wanted.ttl_ms)
                made = Subscription(id_, terms, expires_at, topic.cursor(behind), Health(self._clock))
                self._all[id_] = made
                self._save(made)
                self._nursery.start_soon(self._run, made)
                self._audit.tally("webhook.subscribe", terms.name, outcome="done", detail=self._shown(made))
                return made, reading.truncated
        except BaseException:
            if id_ not in self._all:
                self._shares.remove(principal)
            raise

    def _shown(self, known: Subscription) -> str:
        """Return where something is posted, without what may be secret in an address."""
        return f"{self._receiver(known.id, known.terms).host}, {known.id}"

    def _check_room(self, principal: Principal) -> None:
        if self._shares.amount_of(principal) >= MAX_WEBHOOKS_OF_PRINCIPAL:
            text = f"you have {MAX_WEBHOOKS_OF_PRINCIPAL} subscriptions, which is the limit: end one of them"
            raise TooManyEvents(text, "subscriptions", MAX_WEBHOOKS_OF_PRINCIPAL)
        if not self._shares.has_place(principal):
            raise TooManyEvents(self._shares.why_not(principal, "subscriptions"), "subscriptions", MAX_WEBHOOKS)

    async def _verify(self, receiver: Receiver) -> None:
        """Have an address confirm that it wants what its principal has posted there, unless it has."""
        whose = receiver.principal, receiver.url
        async with self._turns.use(encode(whose).decode()):
            if any((each.terms.principal, each.terms.url) == whose for each in self._all.values()):
                return
            if self._verified.get(whose, 0.0) > trio.current_time():
                return
            await self._callbacks.verify(receiver)
            self._verified[whose] = trio.current_time() + VERIFIED_S
            self._verified.move_to_end(whose)
            if len(self._verified) > MAX_VERIFIED:
                self._verified.popitem(last=False)

    def _receiver(self, id_: str, terms: Terms) -> Receiver:
        keys = tuple(map(key_of, terms.secrets(self._clock())))
        return Receiver(terms.principal, terms.url, id_, keys)

    # Running ----------------------------------------------------------------------------------------------------------

    async def run(self, closing: trio.Event) -> None:
        """Post what happens, until the daemon begins to end; then subscriptions go on at its next start."""
        self._closing = closing
        if not self._read:
            await self._store.ready.wait()
            # The disk tells nobody that it has recovered.
            while (saved := await self._store.read()) is None:  # noqa: ASYNC110
                await trio.sleep(READ_AGAIN_S)
            self._take(saved)
            self._read = True
        try:
            async with trio.open_nursery() as self._nursery:
                for each in self._all.values():
                    self._nursery.start_soon(self._run, each)
                self._nursery.start_soon(self._watch)
                self._opened.set()
                await closing.wait()
                self._nursery.cancel_scope.cancel()
        finally:
            self._nursery = None

    async def _watch(self) -> None:
        """Look again at what may be had, also where nothing happens."""
        bell = Bell()
        with self._changes.on_set(bell.ring):
            while True:
                await bell.rings(trio.current_time() + RIGHTS_S)
                for known in [*self._all.values()]:
                    await trio.lowlevel.checkpoint()
                    attempt, topic = known.attempt, known.topic
                    if topic is not None and not await self._may(known, topic):
                        attempt.cancel()

    async def _run(self, known: Subscription) -> None:
        """Post what happens for one, until it ends."""
        if self._all.get(known.id) is not known:
            return
        error = None
        with trio.CancelScope(deadline=self._deadline_of(known)) as known.scope:
            error = await self._follow(known)
        if self._all.get(known.id) is known:
            self._forget(known)
            if error is not None:
                log.info("events are not posted to an address any more, for %s: %s", known.id, error.message)
                await self._poster(known).terminate(error, partial(self._is_over, known))

    async def _follow(self, known: Subscription) -> ErrorObject:
        """Post what happens; return why that is over for good."""
        pauses = Pauses(*AGAIN_S)
        while True:
            began = trio.current_time()
            try:
                if (over := await self._follow_once(known)) is not None:
                    return over
            except RemoteError as refused:
                forget_frames(refused)
                if refused.error.code in FINAL:
                    return refused.error
            except SupervisorError as error:
                forget_frames(error)
                log.debug("events for an address cannot be followed for now: %s", error.message)
            except Exception:  # the border: a bug costs one subscription a while
                log.exception("a bug while events are posted")
            if trio.current_time() - began > STABLE_S:
                pauses.reset()
            await trio.sleep(pauses.next())

    async def _follow_once(self, known: Subscription) -> ErrorObject | None:
        """Post what happens as long as its topic is followed; return why that is over for good, None if it is not.

        Raises as `Topics.hold` does.
        """
        terms = known.terms
        if (at := await self._view(terms.principal, terms.role)) is None:
            return REVOKED
        try:
            async with self._topics.hold(at, terms.name, terms.arguments) as topic:
                await self._post(known, topic)
                return topic.ended
        except UnknownEvent:
            return self._why_unknown(at, terms.name)

    async def _post(self, known: Subscription, topic: Topic) -> None:
        number = topic.position(known.cursor)
        posting = Posting(topic, -1 if number is None else number, self._poster(known), partial(self._move, known))
        known.posting, known.topic = posting, topic
        try:
            with trio.CancelScope() as known.attempt:
                await posting.run(partial(self._may, known, topic))
        finally:
            known.posting = known.topic = None

    async def _may(self, known: Subscription, topic: Topic) -> bool:
        try:
            at = await self._view(known.terms.principal, known.terms.role)
        except SupervisorError:
            return False
        return at is not None and self._topics.allowed(at, topic)

    async def _is_over(self, known: Subscription) -> bool:
        """Say whether there is none in its place, whose client would take it for ended."""
        await trio.lowlevel.checkpoint()
        return known.id not in self._all

    def _why_unknown(self, at: Viewpoint, name: str) -> ErrorObject | None:
        """Return why there is no such type for somebody any more; None if that is not known yet."""
        called = name.partition(":")[0]
        seen, whole = (each.visible.catalogue for each in (at, self._whole))
        if (server := seen.names.literal(called)) is None:
            there = whole.names.literal(called) is not None
            return REVOKED if there or any(each.name == name for each in self._topics.types(self._whole)) else REMOVED
        return REMOVED if server in seen.entries else None

    def _move(self, known: Subscription) -> None:
        if known.posting is not None and (cursor := known.posting.cursor) != known.cursor:
            known.cursor = cursor
            self._save(known)

    def _poster(self, known: Subscription) -> Poster:
        return Poster(self._callbacks, lambda: self._receiver(known.id, known.terms), known.health)

    def _deadline_of(self, known: Subscription) -> float:
        return trio.current_time() + known.expires_at - self._clock()

    # What is kept -----------------------------------------------------------------------------------------------------

    def _take(self, saved: list[SavedWebhook]) -> None:
        """Know what was kept. What does not open is lost, and its client told so when it refreshes it."""
        for each in saved:
            terms = self._sealing.open(each.sealed, (each.id,), Terms)
            if terms is None:
                self._store.forget(each.id)
                continue
            self._all[each.id] = Subscription(each.id, terms, each.expires_at, each.cursor, Health(self._clock))
            self._shares.add(terms.principal)
        if lost := len(saved) - len(self._all):
            log.warning("%d subscriptions of addresses cannot be read, as with another webhooks.key", lost)

    def _save(self, known: Subscription) -> None:
        sealed = self._sealing.seal(encode(known.terms), (known.id,))
        saved = SavedWebhook(id=known.id, expires_at=known.expires_at, cursor=known.cursor, sealed=sealed)
        self._store.put(saved)

    def _forget(self, known: Subscription) -> None:
        del self._all[known.id]
        self._shares.remove(known.terms.principal)
        self._store.forget(known.id)
        if known.scope is not None:
            known.scope.cancel()
