"""What plugins ask whoever makes a call, by the way of a confirmation: at their client, on a page, or by a result.

Where the client is to make its request again, the hooks are asked again, too. They find the answers that there are
among what the `memory` has, so nobody is asked anything twice, whoever else asks something later on. That goes for a
call, too, that was not sent, as its client had to answer something about another one first (`AnswerFirst`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast

import msgspec
import trio

from actors.errors import AnswerFirst, CallTimedOut, CannotAsk, MalformedRequest
from actors.kit import Latest
from actors.messages import Question
from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.asking import input_required
from actors.protocol.asking.input_required import STATE
from actors.protocol.asking.questions import timeout_answer
from actors.protocol.wire import json
from supervisor.config.call_rules import CallRules
from supervisor.host.loop.workbench import Workbench
from supervisor.plugins.answers import PluginQuestion
from supervisor.plugins.contract import ToolCall
from supervisor.plugins.questions import Action, GivenAnswer
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.confirmations import UNSENT_S
from supervisor.service.asking.elicitations import CallElicitations, Elicitations, who_asks
from supervisor.service.asking.exchange import Exchange
from supervisor.service.asking.rounds import (
    GRACE_S,
    AskedByResult,
    InputNeeded,
    Parking,
    UserRequest,
    ask_user,
    digest_of,
    take_answer,
)
from supervisor.service.plugins.memory import CallMemory, KnownCall
from supervisor.service.request import ServerRequest

MAX_ANSWER_BYTES: Final = 1024 * 1024
"""A larger one counts as cancelled. A page takes less."""
_UNSENT: Final = "not sent: "
"""What stands, with the client behind it, in the place of the state that a client was not given."""
_DIGEST_COST: Final = 16
_ANSWERS_COST: Final = 4
"""So many bytes cost as much, to be digested or read, as one that a model wrote."""


class PluginQuestions:
    """What all calls have in common."""

    def __init__(
        self, parking: Parking, deployment: Latest[Deployment], elicitations: Elicitations, bench: Workbench
    ) -> None:
        self.parking = parking
        self.elicitations = elicitations
        self.bench = bench
        self.memory = CallMemory()
        self._deployment = deployment

    def rules_of(self, server: str) -> CallRules:
        return self._deployment.value.rules_of(server)

    async def begin(self, exchange: Exchange, request: ServerRequest) -> CallAsker:
        """Return who asks during a call, with what is known already if the request is one that is made again.

        Raises `MalformedRequest` for a state that is none, and `AskedByResult` where a person may still answer.
        """
        digest = await self.bench.run(
            len(request.members) // _DIGEST_COST, digest_of, request.server, request.method, request.members
        )
        asker = CallAsker(self, exchange, request, digest)
        if exchange.retry is not None:
            await asker.recall(exchange.retry)
        elif len(self.memory):
            asker.recall_unsent()
        return asker


class CallAsker:
    """Implements `supervisor.plugins.hooks.Asker` for one request. `known` is what it can go on with.

    `waited_s`: so long people took, which is no time of the call.
    """

    def __init__(self, of_all: PluginQuestions, exchange: Exchange, request: ServerRequest, digest: bytes) -> None:
        self._of_all = of_all
        self._exchange = exchange
        self._request = request
        self._digest = digest
        self._rules = of_all.rules_of(request.server)
        self.known = KnownCall()
        self.waited_s = 0.0
        self._state = ""
        self._unsent = f"{_UNSENT}{exchange.identity[1]}"
        self._recalled: KnownCall | None = None

    @property
    def most(self) -> int:
        return self._rules.questions_per_call

    def answers(self, plugin: str) -> Mapping[str, GivenAnswer]:
        return self.known.answers.get(plugin, {})

    async def ask(self, plugin: str, question: PluginQuestion) -> None:
        """See `Asker`. Raises `InputNeeded`, `AskedByResult`, and `CallTimedOut` where the operator wants that."""
        began, given = trio.current_time(), GivenAnswer()
        self._announce(plugin)
        asked = UserRequest(
            question=Question(ELICIT, question.params),
            key=question.key,
            server=self._request.server,
            digest=self._digest,
            within_s=self._rules.question_timeout_s,
            there_only=not self._rules.asks_everyone,
            plugin=plugin,
        )
        pending = msgspec.structs.replace(self.known, pending=(plugin, question.key))
        try:
            if self._of_all.memory.has_room(self._exchange.client.principal, pending):
                raw = await ask_user(self._of_all.parking, self._exchange, asked, by_result=self._request.by_result)
                given = self._answer_in_time(plugin, question) if raw is None else read_answer(raw)
        except CannotAsk:
            given = GivenAnswer()
        except (InputNeeded, AskedByResult):
            self.known = pending
            raise
        self.waited_s += trio.current_time() - began
        self._add(plugin, question.key, given)

    async def recall(self, retry: input_required.Retry) -> None:
        """Find what is known of a request that is made again, and the answer that comes with it. See `begin`."""
        of_all, principal = self._of_all, self._exchange.client.principal
        self._state = state = input_required.state_of(retry)
        known = of_all.memory.take(principal, self._digest, state)
        if known is None:
            return
        self.known = self._recalled = known
        if known.pending is None:
            return
        try:
            await self._take(retry, state, *known.pending)
        except MalformedRequest:
            self.restore()
            raise

    def recall_unsent(self) -> None:
        """Find what is known of a request whose call was not sent the last time; see `keep_unsent`."""
        known = self._of_all.memory.take(self._exchange.client.principal, self._digest, self._unsent)
        if known is not None:
            self._state, self.known, self._recalled = self._unsent, known, known

    async def _take(self, retry: input_required.Retry, state: str, plugin: str, key: str) -> None:
        of_all, principal = self._of_all, self._exchange.client.principal
        answers = await of_all.bench.run(len(retry.responses) // _ANSWERS_COST, input_required.answers, retry)
        parked = of_all.parking.find(state, principal, self._digest)
        if not parked.rounds.continues_with(self._exchange, by_result=self._request.by_result):
            text = "requestState: of a call that was made in the other era, or by execute_mcp_tool; go on with it there"
            raise MalformedRequest(text, outcome=self._outcome)
        of_all.parking.take(state)
        self._announce(plugin)
        answers = parked.answers_in(retry, answers)
        try:
            raw = take_answer(of_all.parking, self._exchange, parked, answers, key, self._request.server)
        except (AskedByResult, InputNeeded) as asked:
            self.keep(asked)
            raise
        self._exchange.retry = None
        self._add(plugin, key, GivenAnswer("cancel") if raw is None else read_answer(raw))

    def restore(self) -> None:
        """Keep what the request found, as it was none that can go on: one that can costs nobody a second call."""
        if self._recalled is not None:
            self._keep(self._state, self._recalled)

    def hold(self, call: ToolCall, result: bytes) -> None:
        """Have a request that is made again go on with this result, as the call was made."""
        self.known = msgspec.structs.replace(self.known, call=call, result=result)

    def keep(self, asked: InputNeeded | AskedByResult) -> None:
        """The request ends with a question. What is known is kept until it is made again."""
        if not self.known.answers and self.known.pending is None:
            return
        state = asked.state if isinstance(asked, AskedByResult) else json.text_at(msgspec.Raw(asked.result), STATE)
        self._keep(state, self.known)

    def keep_unsent(self, error: AnswerFirst) -> None:
        """The call was not sent, as another one comes first. What is known is for the same call of the same client."""
        if self.known.answers:
            self._keep(self._unsent, self.known, (error.retry_after_s or 0.0) + UNSENT_S)

    def _keep(self, state: str, known: KnownCall, for_s: float | None = None) -> None:
        if for_s is None:
            for_s = max(self._rules.question_timeout_s, self._rules.max_s) + GRACE_S
        self._of_all.memory.keep(self._exchange.client.principal, self._digest, state, known, for_s)

    @property
    def _outcome(self) -> Literal["not_sent", "completed"]:
        return "not_sent" if self.known.call is None else "completed"

    def _announce(self, plugin: str) -> None:
        """Have whatever is asked next be asked by a plugin, wherever it is shown."""
        request, rules, client = self._request, self._rules, self._exchange.client
        self._exchange.asked_by = who_asks(request.server, plugin)
        self._exchange.elicitations = CallElicitations(
            self._of_all.elicitations,
            request.server,
            request.name,
            rules.question_timeout_s,
            rules.asks_everyone,
            client,
            plugin=plugin,
            tool=request.tool_name,
        )

    def _answer_in_time(self, plugin: str, question: PluginQuestion) -> GivenAnswer:
        """Return what holds where nobody answered. Raises `CallTimedOut`."""
        fallback = self._rules.question_fallback
        if fallback == "cancel":
            return GivenAnswer()
        answer = timeout_answer(ELICIT, question.params, fallback)
        if isinstance(answer, bytes):
            given = read_answer(msgspec.Raw(answer))
            return given if given.action == "accept" else GivenAnswer()
        text = f"plugin {plugin} asked something about this call, and nobody answered in time; tell the user"
        raise CallTimedOut(text, server=self._request.server, outcome=self._outcome)

    def _add(self, plugin: str, key: str, given: GivenAnswer) -> None:
        own = {**self.answers(plugin), key: given}
        self.known = msgspec.structs.replace(self.known, answers={**self.known.answers, plugin: own}, pending=None)


def read_answer(raw: msgspec.Raw) -> GivenAnswer:
    """Return what a client or a person sent as an answer; what is none, or is too large, counts as cancelled."""
    action: Any = json.text_at(raw, "action")
    content = bytes(json.at(raw, "content")) or b"{}"
    if action not in ("accept", "decline") or len(content) > MAX_ANSWER_BYTES:
        return GivenAnswer("cancel")
    return GivenAnswer(cast("Action", action), content if action == "accept" else b"{}")
