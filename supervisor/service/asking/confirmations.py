"""Tools that run only after their user has said yes, by their name or their safety level (setting `confirm`).

The question goes the way of a server's own: by a request, by an incomplete result, or in a result of a meta-tool.
Nobody has said yes who was not asked, did not answer in time, or answered anything else; and nothing is sent before.

What a modern server asks afterwards passes with a state of its own, so a request that is made again with that state is
known to be confirmed; a state that was not given here means nothing. A confirmed call that was not sent, as its client
had to answer something about another one first (`AnswerFirst`), is known for a while: the yes was for this call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, cast

import msgspec
import trio

from actors.errors import AnswerFirst, CannotAsk, SupervisorError
from actors.messages import CallServer, Question
from actors.principal import ClientKey
from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.wire.jsonrpc import encode
from supervisor.config.call_rules import CallRules
from supervisor.host.loop.workbench import Workbench
from supervisor.identity.audit import Audit
from supervisor.metatools.answers import confirmation_form, shown_call
from supervisor.service.asking.consents import Consents, How
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.parking import Parked, Parking
from supervisor.service.asking.people import UserRequest, ask_user, take_answer

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
        if answer is not None and confirmation_form.is_yes(answer):
            if how := confirmation_form.lasts(answer):
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
    message_text = shown_call.question(message.server, message.members)
    params = {"message": message_text, "requestedSchema": confirmation_form.SCHEMA}
    return Question(ELICIT, msgspec.Raw(encode(params)))
