"""Tools that run only after their user has said yes, by their name or their safety level (setting `confirm`).

The question goes the way of a server's own: by a request, by an incomplete result, or in a result of a meta-tool.
Nobody has said yes who was not asked, did not answer in time, or answered anything else; and nothing is sent before.

What a modern server asks afterwards passes with a state of its own, so a request that is made again with that state is
known to be confirmed; a state that was not given here means nothing. A confirmed call that was not sent, as its client
had to answer something about another one first (`AnswerFirst`), is known for a while: the yes was for this call.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, cast

import msgspec
import trio

from actors.catalogue.marks import digest
from actors.errors import AnswerFirst, CannotAsk, SupervisorError
from actors.messages import CallServer, Question
from actors.principal import ClientKey, Principal
from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.wire.jsonrpc import encode
from supervisor.config.call_rules import CallRules
from supervisor.host.workbench import Workbench
from supervisor.identity.audit import Audit
from supervisor.metatools import questions
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import Parked, Parking, UserRequest, ask_user, take_answer
from supervisor.store import Rows
from supervisor.store.records import SavedConsent

# What people have said yes to for longer than one call: a tool, as it was defined then, for a session or for good.
#
# - A yes is one person's. Where it is for a session it is also that of one client, in memory, for twelve hours at most.
# - It is for one definition of a tool: one that has changed is asked about again.
# - Anybody takes their own back, and an admin anybody's.

How = Literal["once", "session", "always"]
SESSION_S: Final = 12 * 3600.0
MAX_OF_ONE: Final = 1000
"""Of one person; the oldest go first."""


class Consent(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One yes, given at `given_at` (unix s). `client` is empty for one for good; `pinned` is a digest of the tool."""

    principal: Principal
    server: str
    tool: str
    pinned: bytes
    client: str = ""
    given_at: float = 0.0

    @property
    def id(self) -> str:
        """By which it is taken back."""
        text = "\0".join((self.principal, self.server, self.tool, self.client)).encode()
        return hashlib.sha256(text + self.pinned).hexdigest()[:12]

    @property
    def saved(self) -> SavedConsent:
        """What is kept of one for good."""
        return SavedConsent(self.principal, self.server, self.tool, self.pinned, self.given_at)


class Consents:
    """Those of everybody. `clock` gives unix seconds; without a `store` all of them are forgotten at the end.

    Those for a while end by `elapsed`, which nobody sets.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        store: Rows[SavedConsent] | None = None,
        elapsed: Callable[[], float] = trio.current_time,
    ) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._until: dict[str, float] = {}
        self._store = store
        self._given: OrderedDict[str, Consent] = OrderedDict()

    def take(self, kept: Iterable[SavedConsent]) -> None:
        """Know those that were kept."""
        for saved in kept:
            consent = Consent(**msgspec.structs.asdict(saved))
            self._given.setdefault(consent.id, consent)

    def has(self, exchange: Exchange, server: str) -> bool:
        """Say whether whoever calls has said yes to this tool before, as it is now."""
        return any(self._holds(wanted) for wanted in self._possible(exchange, server) or ())

    def give(self, exchange: Exchange, server: str, how: How) -> Consent | None:
        """Remember a yes; None where that is for one call."""
        for_client, for_good = self._possible(exchange, server) or (None, None)
        given = {"session": for_client, "always": for_good}.get(how)
        if given is None:
            return None
        own = [each for each in self._given.values() if each.principal == given.principal]
        for each in own[: max(0, len(own) - MAX_OF_ONE + 1)]:
            self.revoke(each)
        self._given[given.id] = given
        if given.client:
            self._until[given.id] = self._elapsed() + SESSION_S
        if not given.client and self._store is not None:
            self._store.put(given.saved)
        return given

    def of(self, principal: Principal | None) -> list[Consent]:
        """Return those of one person, or of everybody, the oldest first."""
        wanted = [each for each in self._given.values() if principal in (None, each.principal)]
        return [each for each in wanted if self._holds(each)]

    def revoke(self, consent: Consent) -> None:
        self._given.pop(consent.id, None)
        self._until.pop(consent.id, None)
        if not consent.client and self._store is not None:
            self._store.forget(consent.principal, consent.server, consent.tool, consent.pinned)

    def _holds(self, wanted: Consent) -> bool:
        given = self._given.get(wanted.id)
        return given is not None and not (given.client and self._elapsed() >= self._until[given.id])

    def _possible(self, exchange: Exchange, server: str) -> tuple[Consent, Consent] | None:
        """Return what whoever calls could have said: for this client, and for good."""
        if (tool := exchange.tool) is None:
            return None
        own = tool.own or tool
        for_good = Consent(
            principal=exchange.client.principal,
            server=server,
            tool=own.name,
            pinned=digest(own),
            given_at=self._clock(),
        )
        return msgspec.structs.replace(for_good, client=exchange.client.name or "a client without a name"), for_good


KEY: Final = "confirm"
_SHOWN_COST: Final = 4
"""So many bytes of a call cost as much, to be shown, as one that a model wrote."""
MAX_PASSED: Final = 4096
"""Confirmed calls that are to be made again."""
UNSENT_S: Final = 60.0
"""For the call that comes first to end, after its question has its answer, and for the other one to be made again."""


class Declined(SupervisorError, code=-31401, kind="declined"):
    """The user did not say yes to a call that needs it (`confirm`). Nothing was sent."""


class Confirmations:
    """Asks for a yes. Calls that wait for one in the meantime are parked: nothing of them was sent."""

    def __init__(self, parking: Parking, bench: Workbench, audit: Audit, consents: Consents) -> None:
        self._audit = audit
        self._consents = consents
        self._parking = parking
        self._bench = bench
        self._passed: dict[_Key, float] = {}

    def remember(self, exchange: Exchange, digest: bytes, state: msgspec.Raw | None, for_s: float) -> None:
        """A confirmed call is to be made again within `for_s`, with this state of its server (JSON text, or empty).

        None: it was not sent, so it is to be made anew, by the same client.
        """
        now = trio.current_time()
        if len(self._passed) >= MAX_PASSED:
            self._passed = {key: until for key, until in self._passed.items() if until > now}
        if len(self._passed) < MAX_PASSED:
            self._passed[_key(exchange, digest, state)] = now + for_s

    def remember_unsent(self, exchange: Exchange, error: AnswerFirst) -> None:
        """A call was not sent, for another one that comes first. One that was confirmed is so when it is made again."""
        if exchange.confirmed:
            self.remember(exchange, exchange.confirmed, None, (error.retry_after_s or 0.0) + UNSENT_S)

    async def ask(
        self, exchange: Exchange, message: CallServer, digest: bytes, rules: CallRules, *, by_result: bool
    ) -> None:
        """Return once the user of a client says yes. `by_result`: it may be told what to do by a result.

        A confirmed call that is made again is known once: one yes runs a tool once. Unless the server may ask everyone,
        a yes of a model is none: a person has to say it, on a page. Raises `Declined` for anything else, `CannotAsk`
        for a client that cannot be asked, `InvalidArguments` for a call that cannot be shown, and `InputNeeded` or
        `AskedByResult` for a client that is to make its request again.
        """
        state = exchange.retry.state if exchange.retry is not None else None
        if self._passed.pop(_key(exchange, digest, state), 0.0) > trio.current_time():
            exchange.confirmed = digest
            return
        question = await self._bench.run(len(message.members) // _SHOWN_COST, _question, message)
        asked = UserRequest(
            question=question,
            key=KEY,
            server=message.server,
            digest=digest,
            within_s=rules.confirmed_within_s(message.name),
            there_only=not rules.asks_everyone,
            confirms=True,
        )
        try:
            answer = await ask_user(self._parking, exchange, asked, by_result=by_result)
        except CannotAsk as error:
            self._note_unasked(message)
            text = f"{message.server}:{message.name} runs only after its user has said yes, and {error.message}"
            raise CannotAsk(f"{text}; tell the user", server=message.server) from None
        self._check(answer, exchange, message, digest)

    def go_on(
        self, exchange: Exchange, message: CallServer, parked: Parked, answers: Mapping[str, msgspec.Raw]
    ) -> None:
        """Return if the user has said yes to a call that waited for that. Raises as `ask` does."""
        answer = take_answer(self._parking, exchange, parked, answers, KEY, message.server)
        self._check(answer, exchange, message, parked.digest)

    def refusal(self, message: CallServer) -> Declined:
        """Return what a call ends with that needs a yes, of somebody whom nobody is to ask; see `ConfirmMode`."""
        target = f"{message.server}:{message.name}"
        self._audit.tally("tool.confirm", target, outcome="refused", detail="its user is not to be asked")
        why = "it needs a yes, and the operator has that refused for this user"
        return Declined(f"{target} was not run: {why}; do not try again", server=message.server)

    def is_known(self, exchange: Exchange, message: CallServer) -> bool:
        """Say whether the user has said yes to this tool for longer than one call."""
        return self._consents.has(exchange, message.server)

    def _check(self, answer: msgspec.Raw | None, exchange: Exchange, message: CallServer, digest: bytes) -> None:
        """Raise `Declined` for what is no yes, and remember a yes for as long as it was given for.

        What was answered is in the audit since then (`Elicitations`).
        """
        if answer is not None and questions.is_yes(answer):
            if how := questions.lasts(answer):
                self._consents.give(exchange, message.server, cast("How", how))
            else:
                exchange.confirmed = digest
            return
        said = "the user did not say yes"
        if answer is None:
            said = "nobody answered in time"
            self._audit.note("tool.confirm", f"{message.server}:{message.name}", outcome="refused", detail=said)
        raise Declined(f"{message.server}:{message.name} was not run: {said}", server=message.server)

    def _note_unasked(self, message: CallServer) -> None:
        """Record a call that was refused without anybody's doing, and may be again and again."""
        target, why = f"{message.server}:{message.name}", "nobody can be asked"
        self._audit.tally("tool.confirm", target, outcome="refused", detail=why)


_Key = tuple[ClientKey, bytes, bytes | None]


def _key(exchange: Exchange, digest: bytes, state: msgspec.Raw | None) -> _Key:
    """A state is whose ever shows it, of the same principal; without one it is the same client that counts."""
    if state is None:
        return exchange.identity, digest, None
    return (exchange.client.principal, None), digest, hashlib.blake2b(bytes(state), digest_size=16).digest()


def _question(message: CallServer) -> Question:
    """Return the question for a call. Raises `InvalidArguments` for one that no person can be shown."""
    message_text = questions.question(message.server, message.members)
    params = {"message": message_text, "requestedSchema": questions.SCHEMA}
    return Question(ELICIT, msgspec.Raw(encode(params)))
