"""Plugins at a call: a call and its result as they see them, what they ask whoever makes it, and what is known of it
meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, cast

import msgspec
import trio

from actors.catalogue.metadata import Traits
from actors.codes import URL_ELICITATION_REQUIRED
from actors.errors import AnswerFirst, CallRefused, CallTimedOut, CannotAsk, InvalidArguments, MalformedRequest
from actors.kit import Latest, Quota
from actors.messages import Question
from actors.principal import LOCAL, Principal
from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.asking import input_required
from actors.protocol.asking.input_required import STATE
from actors.protocol.asking.questions import timeout_answer
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError, encode
from actors.transport.redaction import Confidential
from supervisor.config.call_rules import CallRules
from supervisor.host.workbench import Workbench
from supervisor.identity.audit import Audit
from supervisor.identity.people import team_of, user_of
from supervisor.identity.requester import ORIGIN
from supervisor.plugins.answers import PluginQuestion
from supervisor.plugins.contract import ToolCall
from supervisor.plugins.hooks import Asker, Nobody, PluginTable
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
from supervisor.service.client import Client
from supervisor.service.request import ServerRequest

# What is known of a call that its client is to make again, as far as plugins asked something about it:
#
# - It is kept under the state that the client sends back, whoever that is of: the daemon, or a modern server. It is
#   taken once, by the same principal and for the same request.
# - It is bounded in calls and bytes, which principals share, and gone when its time is over. Nothing of it is logged.

MAX_CALLS: Final = 1024
MAX_BYTES: Final = 32 * 1024 * 1024
"""Of all answers and results that are kept."""
Answers = Mapping[str, Mapping[str, GivenAnswer]]
"""By the name of the plugin, and the key of its question."""


class KnownCall(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one. `pending` is the plugin, and the key of its question, whose answer comes with the request.

    `call` and `result` are those of a call that was made, whose result plugins ask about.
    """

    answers: Answers = {}
    pending: tuple[str, str] | None = None
    call: ToolCall | None = None
    result: bytes = b""

    @property
    def size(self) -> int:
        given = sum(len(each.content) for of_plugin in self.answers.values() for each in of_plugin.values())
        return given + len(self.result) + (len(self.call.arguments) if self.call is not None else 0)


class _Kept(msgspec.Struct, frozen=True):
    principal: Principal
    known: KnownCall
    size: int
    until: float


class CallMemory:
    """What is known of all calls that are to be made again."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Principal, bytes, bytes], _Kept] = {}
        self._calls, self._bytes = Quota(MAX_CALLS), Quota(MAX_BYTES)

    def __len__(self) -> int:
        return len(self._kept)

    def has_room(self, principal: Principal, known: KnownCall) -> bool:
        self._drop_expired()
        return self._calls.has_room(principal) and self._bytes.has_room(principal, known.size)

    def keep(self, principal: Principal, digest: bytes, state: str, known: KnownCall, for_s: float) -> None:
        """Keep what is known of a request with this digest for so long, if there is room: else it is asked again."""
        key = _key(principal, digest, state)
        self._drop(key)
        if self.has_room(principal, known):
            self._kept[key] = _Kept(principal, known, known.size, trio.current_time() + for_s)
            self._calls.add(principal)
            self._bytes.add(principal, known.size)

    def take(self, principal: Principal, digest: bytes, state: str) -> KnownCall | None:
        self._drop_expired()
        return self._drop(_key(principal, digest, state))

    def _drop(self, key: tuple[Principal, bytes, bytes]) -> KnownCall | None:
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        self._calls.remove(kept.principal)
        self._bytes.remove(kept.principal, kept.size)
        return kept.known

    def _drop_expired(self) -> None:
        now = trio.current_time()
        for key in [key for key, kept in self._kept.items() if kept.until <= now]:
            self._drop(key)


def _key(principal: Principal, digest: bytes, state: str) -> tuple[Principal, bytes, bytes]:
    return principal, digest, hashlib.blake2b(state.encode(errors="surrogatepass"), digest_size=16).digest()


# What plugins ask whoever makes a call, by the way of a confirmation: at their client, on a page, or by a result.
#
# Where the client is to make its request again, the hooks are asked again, too. They find the answers that there are
# among what the `memory` has, so nobody is asked anything twice, whoever else asks something later on. That goes for a
# call, too, that was not sent, as its client had to answer something about another one first (`AnswerFirst`).

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


# A call of a tool and its result as plugins see them, whatever door it came through.
#
# What a client is told before the result (progress, log messages, questions of servers) does not pass here, nor does
# anything but calls of tools. Where plugins look at results no call becomes a task: its client would fetch the result
# past them.

_OPENED_COST: Final = 64
"""So many bytes of members cost as much, to be taken apart, as one that a model wrote."""
NO_TASKS: Final = "a plugin looks at results here, so no call becomes a task; make the call without a task"


class CallHooks:
    """What the plugins of the `table` say of calls."""

    def __init__(
        self,
        table: PluginTable,
        deployment: Latest[Deployment],
        bench: Workbench,
        audit: Audit,
        questions: PluginQuestions,
        traits: Callable[[Principal, str, str], Traits] = lambda principal, server, tool: Traits(),
    ) -> None:
        """`traits` are those of a server's tool, by its own name, as it is started for somebody."""
        self.table = table
        self._traits = traits
        self._questions = questions
        self._deployment = deployment
        self._bench = bench
        self._audit = audit

    def passes(self, exchange: Exchange) -> bool:
        """Say whether a call passes here: a plugin looks at it, or one that is gone has asked something about one."""
        return self.table.on_calls or (exchange.retry is not None and len(self._questions.memory) > 0)

    async def call(
        self, exchange: Exchange, request: ServerRequest, make: Callable[[ServerRequest], Awaitable[bytes]]
    ) -> bytes:
        """Return the result of a call that `make` makes, both as plugins have it.

        Raises what `make` and hooks raise, and `InputNeeded` or `AskedByResult` where a plugin asks something.
        """
        if request.as_task and self.table.on_results:
            if exchange.client.era == "legacy":  # it asked for a task; of a modern one any call may become one
                raise CallRefused(NO_TASKS, server=request.server)
            request = msgspec.structs.replace(request, as_task=False)
        asker = await self._questions.begin(exchange, request)
        try:
            call, body = asker.known.call, asker.known.result
            if call is None:
                call, members = await self.before(exchange, request.server, request.name, request.members, asker)
                since = request.since + asker.waited_s
                body = await make(msgspec.structs.replace(request, members=members, since=since))
            asker.hold(call, body)
            return await self.after(call, body, asker)
        except (InputNeeded, AskedByResult) as asked:
            asker.keep(asked)
            raise
        except AnswerFirst as error:
            asker.keep_unsent(error)
            raise
        except MalformedRequest:
            asker.restore()
            raise
        except RemoteError as error:
            if call is None:
                raise
            refused = error
        raise await self.after_error(call, refused)

    async def before(
        self, exchange: Exchange, server: str, tool: str, members: bytes, asker: Asker
    ) -> tuple[ToolCall, bytes]:
        """Return a call as plugins have it made, and its members, which are without braces.

        Raises `CallRefused`, `InvalidArguments`. A checkpoint if any plugin is asked.
        """
        opened = await self._bench.run(len(members) // _OPENED_COST, _open, members)
        arguments = bytes(opened.get("arguments", b"{}"))
        if arguments.strip() == b"null":
            arguments = b"{}"
        if not arguments.lstrip().startswith(b"{"):
            raise InvalidArguments("arguments must be a JSON object", server=server)
        call = self._call(exchange.client, server, tool, arguments)
        try:
            allowed = await self.table.before_call(call, asker)
        except CallRefused as error:
            self._record(error, call)
            raise
        if allowed.arguments is call.arguments:
            return call, members
        opened["arguments"] = msgspec.Raw(allowed.arguments)
        return allowed, encode(opened)[1:-1]

    async def after(self, call: ToolCall, body: bytes, asker: Asker) -> bytes:
        """Return the result of a call as plugins have it passed on. Raises `CallRefused`."""
        try:
            return await self.table.after_call(call, body, asker)
        except CallRefused as error:
            self._record(error, call)
            raise

    async def after_error(self, call: ToolCall, error: RemoteError) -> RemoteError:
        """Return what a server answered in the place of a result: plugins see its text as a failed result, and its data
        is left out, and ask nobody about it. Raises `CallRefused`.
        """
        said = error.error
        if not self.table.on_results or said.code == URL_ELICITATION_REQUIRED:
            return error
        result = encode({"content": [{"type": "text", "text": said.message}], "isError": True})
        shown = await self.after(call, result, Nobody())
        text = said.message if shown is result else _text_of(shown)
        return RemoteError(ErrorObject(said.code, text, msgspec.Raw(b"")), error.server)

    def _call(self, client: Client, server: str, tool: str, arguments: bytes) -> ToolCall:
        user, role, teams = self._who(client.principal)
        known = self._traits(client.principal, server, tool)
        return ToolCall(
            user=user,
            role=role,
            teams=teams,
            client=client.name,
            server=server,
            tool=tool,
            arguments=arguments,
            category=known.category,
            safety=known.safety,
        )

    def _who(self, principal: Principal) -> tuple[str, str, frozenset[str]]:
        """Return user, role and teams of whoever makes a call."""
        origin, user = ORIGIN.get(), user_of(principal)
        person = origin.requester.person if origin is not None and origin.requester is not None else None
        role: str = "admin" if principal == LOCAL else "member"
        if person is not None and person.principal == principal:
            role = person.role
        people = self._deployment.value.settings.identity
        return user, role, people.teams_of(user, team_of(principal))

    def _record(self, error: CallRefused, call: ToolCall) -> None:
        detail = f"by plugin {(error.details or {}).get('plugin', '')}"
        self._audit.tally("tool.refuse", call.path, outcome="refused", detail=detail)


def _open(members: bytes) -> dict[str, msgspec.Raw]:
    try:
        return json.read(json.MEMBERS, b"{%b}" % members)
    except json.UnreadableJson:
        raise InvalidArguments("the params of the call cannot be read") from None


def _text_of(result: bytes) -> str:
    """Return the text of a result."""
    blocks = json.read_or(json.OBJECTS, json.members(result).get("content", b"[]"), [])
    return "\n".join(json.text_at(block.get("text")) for block in blocks)
