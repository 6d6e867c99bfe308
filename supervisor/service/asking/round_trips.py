"""A call with everything that is asked before it has its result, whatever the eras of client and server.

| client | server | how it is asked |
| --- | --- | --- |
| legacy | legacy | by requests; see `Exchange.ask`, and `actors/server/parts/dialogue.py` |
| modern | modern | by an incomplete result and a second request, which pass as they are |
| modern | legacy | the call is parked; see `Parking` and `Rounds` |
| legacy | modern | the questions of an incomplete result are requests to the client, whose answers are a second call |
| cannot be asked | any | by an ordinary result with a continuation, where the entry allows it (`ask`) |

(MCP 2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation, client/sampling, client/roots.)
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
import trio

from actors.codes import URL_ELICITATION_REQUIRED
from actors.errors import AnswerFirst, CallTimedOut, CannotAsk, MalformedRequest, ProtocolViolation, TooManyCalls
from actors.kit import Address, Latest, Reply, given_reason
from actors.messages import CallServer, Question, Result
from actors.protocol.agreement.capabilities import ELICIT, mode_of
from actors.protocol.asking import input_required
from actors.protocol.asking.input_required import METHODS, InputRequest, InputRequired, Retry
from actors.protocol.asking.questions import CANCELLED, Fallback, refusal, requests_in, timeout_answer
from actors.protocol.wire import json
from actors.protocol.wire.json import NO_RAW
from actors.protocol.wire.jsonrpc import RemoteError, encode
from actors.router import Message as RouterMessage
from supervisor.host.workbench import Workbench
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.names import LaunchNames
from supervisor.servers.safety import SafetyRules, exposure_error
from supervisor.service.asking.confirmations import Confirmations
from supervisor.service.asking.exchange import OVER, Allowances, CallAllowance, Exchange, label_result
from supervisor.service.asking.rounds import (
    GRACE_S,
    AskedByResult,
    CapabilityRequired,
    InputNeeded,
    Parked,
    Parking,
    Rounds,
    digest_of,
)
from supervisor.service.fitting.relay import has_failed

MAX_ROUNDS: Final = 10
"""Incomplete results to one request, as the official SDKs have it."""
PACE_S: Final = 0.25
"""Between requests that a server wants made again without asking for anything."""
_DIGEST_COST: Final = 16
"""So many bytes cost as much, to be digested, as one that a model wrote."""
_ANSWERS_COST = _READ_COST = 4
"""The same of what questions and answers are in."""
_SKIMMED_COST: Final = 256
"""The same of a result of which only its type is read."""


class RoundTrips:
    """Asks servers through the router, and clients where their servers ask back."""

    def __init__(
        self,
        router: Address[RouterMessage],
        deployment: Latest[Deployment],
        safety: SafetyRules,
        bench: Workbench,
        parking: Parking,
        launches: LaunchNames,
        confirmations: Confirmations,
    ) -> None:
        self._launches = launches
        self._router = router
        self._deployment = deployment
        self._safety = safety
        self._bench = bench
        self._parking = parking
        self._confirmations = confirmations
        self._allowances = Allowances(deployment)

    async def result(self, exchange: Exchange, message: CallServer, *, by_result: bool = False) -> Result:
        """Return the result of a call, which is complete. `by_result`: a client may be asked by what it is answered.

        Raises `InputNeeded` or `AskedByResult` for a client that is to answer something first, `CapabilityRequired`
        where it failed as the client could not be asked, and what a call may raise. A checkpoint.
        """
        updates = exchange.session.updates
        if updates is not None and self._deployment.value.is_per_client(message.server):
            updates.leave = partial(self._launches.leave, exchange.identity)
        if message.method not in METHODS:
            return await self._router.ask(message)
        is_tool = message.method == "tools/call"
        launch = self._launches.of(message.server, message.principal)
        if is_tool and not self._safety.of_call(message.principal, launch, message.name).exposed:
            raise exposure_error(message.server, message.name)
        retry, parked, answers = exchange.retry, None, dict[str, msgspec.Raw]()
        if retry is not None and (retry.ours or self._parking.is_given(input_required.state_of(retry))):
            parked, answers = await self._take_parked(exchange, message, retry, by_result=by_result)
            if parked.plugin:  # which is not there any more, or asks nothing: the call begins anew
                parked.rounds.close()
                parked, exchange.retry = None, None
            elif not parked.unconfirmed:
                return await self._resume(exchange, message, parked, answers)
        holds = self._safety.of_call(message.principal, launch, message.name) if is_tool else None
        if holds is not None and holds.refused:
            raise self._confirmations.refusal(message)
        if parked is not None:
            self._confirmations.go_on(exchange, message, parked, answers)
            exchange.retry = None
        elif holds is not None and holds.needs_yes and not self._confirmations.is_known(exchange, message):
            digest, rules = await self._digest(message), self._deployment.value.rules_of(message.server)
            await self._confirmations.ask(exchange, message, digest, rules, by_result=by_result)
        exchange.allowance = CallAllowance(self._allowances, message.server)
        by_result = by_result and self._deployment.value.rules_of(message.server).asks_everyone
        if by_result or exchange.client.era == "modern":
            if (retry := exchange.retry) is not None:
                resumes = bool(input_required.state_of(retry))
                message = msgspec.structs.replace(message, retry=retry.members(), resumes=resumes)
            return await self._begin(exchange, message, by_result=by_result)
        reply = self._router.request(message)
        try:
            result = await reply.wait()
        except trio.Cancelled:
            exchange.forwarded = _may_have_been_sent(message, reply)
            raise
        return await self._complete_by_requests(exchange, message, result) if result.era == "modern" else result

    async def _take_parked(
        self, exchange: Exchange, message: CallServer, retry: Retry, *, by_result: bool
    ) -> tuple[Parked, dict[str, msgspec.Raw]]:
        """Take the call out of its parking that a request goes on with, and the answers to its questions.

        Raises `MalformedRequest` if there is none: what comes with a state of ours never begins a call.
        """
        state, digest = input_required.state_of(retry), await self._digest(message)
        answers = await self._bench.run(len(retry.responses) // _ANSWERS_COST, input_required.answers, retry)
        parked = self._parking.find(state, exchange.client.principal, digest)
        if not parked.rounds.continues_with(exchange, by_result=by_result):
            text = "requestState: of a call that was made in the other era, or by execute_mcp_tool; go on with it there"
            raise MalformedRequest(text, outcome="not_sent" if parked.reply is None else "unknown")
        self._parking.take(state)
        return parked, parked.answers_in(retry, answers)

    # Clients that are asked by answers ------------------------------------------------------------------------------

    async def _begin(self, exchange: Exchange, message: CallServer, *, by_result: bool) -> Result:
        rounds = Rounds(exchange, by_result=by_result)
        reply = self._router.request(msgspec.structs.replace(message, exchange=rounds, by_model=rounds.by_model))
        try:
            result = await self._round(rounds, reply, exchange, message)
        except AnswerFirst as error:
            self._confirmations.remember_unsent(exchange, error)
            raise
        except RemoteError as error:
            passed = exchange.client.era == "legacy" or error.error.code != URL_ELICITATION_REQUIRED
            requests = {} if passed else requests_in(error.error)
            question = next(iter(requests.values()), None)
            if question is None or exchange.lacks(Question(question.method, question.params)):
                raise
        else:
            return await self._complete(exchange, message, rounds, result)
        state = self._parking.park(await self._parkable(exchange, message, rounds, None))
        raise InputNeeded(input_required.incomplete_result(requests, state))

    async def _complete(self, exchange: Exchange, message: CallServer, rounds: Rounds, result: Result) -> Result:
        if not await self._incomplete(result):
            return result
        everyone = exchange.elicitations is not None and exchange.elicitations.everyone
        required = await self._read(result, message.server) if everyone or rounds.by_result else None
        if required is None or not any(exchange.lacks(_question(each)) for each in required.requests.values()):
            if exchange.asks_later and exchange.client.era == "modern":
                required = required or await self._read(result, message.server)
                later = await self._parkable(exchange, message, rounds, None, required)
                raise InputNeeded(input_required.incomplete_result({}, self._parking.park(later)))
            if exchange.client.era == "modern":
                launch = self._launches.of(message.server, message.principal)
                if message.method == "tools/call" and self._safety.confirms(message.principal, launch, message.name):
                    state, digest = (await self._read(result, message.server)).state, await self._digest(message)
                    max_s = self._deployment.value.rules_of(message.server).max_s
                    self._confirmations.remember(exchange, digest, state, max_s)
                raise InputNeeded(await self._relay_questions(exchange, result, message.server))
            return await self._complete_by_requests(exchange, message, result)
        if not rounds.by_result:  # a person is asked on a page, and its client waits
            return await self._complete_by_requests(exchange, message, result)
        try:
            rounds.require(required.requests)
        except CannotAsk as error:
            text = f"server {message.server!r} asked for input: {error.message}"
            raise CannotAsk(text, server=message.server) from None
        parked = await self._parkable(exchange, message, rounds, None, required)
        raise self._parking.park_and_ask(parked, message.server, by_result=True)

    async def _resume(
        self, exchange: Exchange, message: CallServer, parked: Parked, answers: dict[str, msgspec.Raw]
    ) -> Result:
        rounds, required = parked.rounds, parked.required
        rounds.go_on(exchange, answers)
        if parked.reply is not None:
            return await self._round(rounds, parked.reply, exchange, message)
        if required is not None:
            if rounds.questions:
                parked = await self._parkable(exchange, message, rounds, None, required)
                raise self._parking.park_and_ask(parked, message.server, by_result=True)
            known = Retry(msgspec.Raw(encode(rounds.answers)) if rounds.answers else NO_RAW, required.state)
            message = msgspec.structs.replace(message, retry=known.members())
        return await self._begin(exchange, message, by_result=rounds.by_result)

    async def _round(self, rounds: Rounds, reply: Reply[Result], exchange: Exchange, message: CallServer) -> Result:
        """Wait for the result, or for something to ask. Cancelling it abandons the call."""
        try:
            while not await rounds.settled(reply):
                parked = await self._parkable(exchange, message, rounds, reply)
                try:
                    raise self._parking.park_and_ask(parked, message.server, by_result=not rounds.requests)
                except CannotAsk:
                    rounds.close()
        except (trio.Cancelled, TooManyCalls) as ended:
            exchange.forwarded = _may_have_been_sent(message, reply)
            reply.abandon(given_reason(ended) if isinstance(ended, trio.Cancelled) else "")
            rounds.close()
            raise
        except (InputNeeded, AskedByResult):
            rounds.pause()
            reply.on_settled(lambda: rounds.close(OVER))  # while it is parked nobody should answer in vain
            raise
        rounds.close(OVER)
        result = reply.result()
        if rounds.lacked and exchange.client.era == "modern" and has_failed(bytes(result.body)):
            raise CapabilityRequired(message.server, rounds.lacked, result)
        return result

    async def _parkable(
        self,
        exchange: Exchange,
        message: CallServer,
        rounds: Rounds,
        reply: Reply[Result] | None,
        required: InputRequired | None = None,
    ) -> Parked:
        timeout_s = self._deployment.value.rules_of(message.server).question_timeout_s
        expires = trio.current_time() + timeout_s + GRACE_S
        return Parked(exchange.client.principal, await self._digest(message), expires, reply, rounds, required)

    async def _incomplete(self, result: Result) -> bool:
        size = len(result.body) // _SKIMMED_COST
        return result.era == "modern" and await self._bench.finish(size, input_required.is_incomplete, result.body)

    async def _relay_questions(self, exchange: Exchange, result: Result, server: str) -> bytes:
        """Return what a modern server asks as its modern client gets it: as it is, where the client knows who asks.

        Raises `TooManyQuestions` if it may ask no more.
        """
        required = await self._read(result, server)
        if exchange.allowance is not None:
            exchange.allowance.count_all(required.requests.values())
        if not exchange.asked_by:
            return bytes(result.body)
        cost = len(result.body) // _READ_COST
        return await self._bench.finish(cost, label_result, exchange.asked_by, bytes(result.body), required.requests)

    async def _read(self, result: Result, server: str) -> InputRequired:
        try:
            return await self._bench.finish(len(result.body) // _READ_COST, input_required.read, result.body)
        except ProtocolViolation as error:
            raise ProtocolViolation(f"server {server!r} {error.message}", server=server, outcome="unknown") from None

    async def _digest(self, message: CallServer) -> bytes:
        cost = len(message.members) // _DIGEST_COST
        return await self._bench.finish(cost, digest_of, message.server, message.method, message.members)

    # Legacy clients of modern servers -------------------------------------------------------------------------------

    async def _complete_by_requests(self, exchange: Exchange, message: CallServer, result: Result) -> Result:
        server = message.server
        rules = self._deployment.value.rules_of(server)
        with trio.move_on_after(rules.max_s):
            for _ in range(MAX_ROUNDS):
                if not await self._incomplete(result):
                    return result
                required = await self._read(result, server)
                retry = Retry(state=required.state)
                if required.requests:
                    answers = await _ask_all(exchange, server, required.requests, self._deployment)
                    retry = Retry(responses=msgspec.Raw(encode(answers)), state=required.state)
                else:
                    await trio.sleep(PACE_S)
                again = msgspec.structs.replace(message, retry=retry.members(), deadline_s=rules.timeout_s)
                result = await self._router.ask(again)
            if not await self._incomplete(result):
                return result
            text = f"server {server!r} asked for input {MAX_ROUNDS} times during one call"
            raise ProtocolViolation(text, server=server, outcome="unknown")
        text = f"server {server!r} asked for input, and had no result in {rules.max_s:.0f} s"
        raise CallTimedOut(text, server=server, outcome="unknown")


def _may_have_been_sent(message: CallServer, reply: Reply[Result]) -> bool:
    """Say whether a server may know of a request that is given up: of the one before it, where it is made again."""
    return bool(message.retry) or not reply.queued


def _question(request: InputRequest) -> Question:
    return Question(request.method, request.params)


async def _ask_all(
    exchange: Exchange, server: str, requests: Mapping[str, InputRequest], deployment: Latest[Deployment]
) -> dict[str, msgspec.Raw]:
    """Return what a legacy client answers to the questions of an incomplete result, which are requests made together.

    Nobody who does not answer has said yes. Raises `CannotAsk` where the server could not do with that.
    """
    replies: dict[str, Reply[msgspec.Raw]] = {}
    answers: dict[str, msgspec.Raw] = {}
    try:
        for key, request in requests.items():
            if (wrong := refusal(request.method, request.params)) is not None:
                raise ProtocolViolation(f"server {server!r} asked {wrong}", server=server, outcome="unknown")
            replies[key] = exchange.ask(Question(request.method, _for_legacy(request)))
        with trio.move_on_after(deployment.value.rules_of(server).question_timeout_s):
            for key, reply in replies.items():
                answers[key] = await _client_answer(requests[key].method, reply, server)
    finally:
        for reply in replies.values():
            reply.abandon()
    fallback = deployment.value.rules_of(server).question_fallback
    for key, request in requests.items():
        if key not in answers:
            given = replies[key].value
            answers[key] = _timeout_answer(request, fallback, server) if given is None else given
    return answers


async def _client_answer(method: str, reply: Reply[msgspec.Raw], server: str) -> msgspec.Raw:
    try:
        return await reply.wait()
    except CannotAsk as error:
        raise CannotAsk(f"server {server!r} asked for input: {error.message}", server=server) from None
    except RemoteError as error:
        if method == ELICIT:
            return msgspec.Raw(CANCELLED)
        text = f"server {server!r} asked for input ({method}), and the client refused: {error.error.message[:200]}"
        raise CannotAsk(text, server=server) from None


def _timeout_answer(request: InputRequest, fallback: Fallback, server: str) -> msgspec.Raw:
    answer = timeout_answer(request.method, request.params, fallback)
    if isinstance(answer, bytes):
        return msgspec.Raw(answer)
    raise CannotAsk(f"server {server!r} asked for input ({request.method}), and {answer.message}", server=server)


def _for_legacy(request: InputRequest) -> msgspec.Raw:
    """Return the params of a question for a client of 2025-11-25, where whoever asks for a visit gives it an id."""
    if request.method != ELICIT or mode_of(request.params) != "url":
        return request.params
    members = json.MEMBERS.decode(request.params)
    if "elicitationId" in members:
        return request.params
    return msgspec.Raw(encode({**members, "elicitationId": secrets.token_urlsafe(16)}))
