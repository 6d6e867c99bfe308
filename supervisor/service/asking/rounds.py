"""Calls whose client is asked by what it is answered: questions collected in rounds, calls parked between two of them.

One round is what a client is given to answer at a time. Between two rounds the call has no exchange: what the server
tells meanwhile goes to nobody. At the end: the daemon's own questions, which reach a user on the same ways.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import trio

from actors.codes import MISSING_CAPABILITY
from actors.errors import CannotAsk, MalformedRequest, SupervisorError
from actors.kit import ClientQuota, Reply, given_reason
from actors.messages import Note, Question, Result
from actors.principal import ClientKey, Principal
from actors.protocol.agreement.capabilities import ELICIT, missing_capability, requirement
from actors.protocol.asking.forms import is_secret
from actors.protocol.asking.input_required import InputRequest, InputRequired, Retry, incomplete_result
from actors.protocol.asking.questions import MAX_FORM_BYTES, Visitor, refusal, with_progress_token, with_token
from actors.protocol.exchanges import PROGRESS
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.fleet.peers import LIFE_BYTES, DaemonLife
from supervisor.metatools.execution import PREFIX
from supervisor.metatools.questions import ToldQuestion
from supervisor.service.asking.exchange import Exchange, label

MAX_OPEN: Final = 32
TOGETHER_S: Final = 0.04
"""For the questions that a server asks at the same time."""


_FORM: Final = Question(ELICIT, msgspec.Raw(b"{}"))


class InputNeeded(Exception):
    """A request is over without a complete result; `result` is what its client gets, as JSON text."""

    def __init__(self, result: bytes) -> None:
        super().__init__()
        self.result = result


class AskedByResult(Exception):
    """A request is over with a result that has questions in it, for a client that cannot be asked in any other way.

    `questions` by their keys; `state` is what the client has to send with its answers, within `expires_s`. `plugin` is
    who asks, if that is not the server; `confirms`: we do, whether the tool may run.
    """

    def __init__(
        self,
        server: str,
        questions: Mapping[str, ToldQuestion],
        state: str,
        expires_s: float,
        plugin: str = "",
        *,
        confirms: bool = False,
    ) -> None:
        super().__init__()
        self.confirms = confirms
        self.plugin = plugin
        self.server = server
        self.questions = questions
        self.state = state
        self.expires_s = expires_s


class CapabilityRequired(SupervisorError, code=MISSING_CAPABILITY, http_status=400, kind="capability"):
    """The call failed because its server asked what a modern client did not declare (`data.requiredCapabilities`).

    (MCP 2026-07-28, basic/index "Error Codes".) `result` is what the server answered after it was told so.
    """

    def __init__(self, server: str, required: Mapping[str, Any], result: Result) -> None:
        text = f"server {server!r} asked for what the client did not declare: {', '.join(required)}"
        details = {"requiredCapabilities": dict(required)}
        super().__init__(text, server=server, outcome="completed", details=details)
        self.result = result


class _Open(msgspec.Struct, frozen=True, eq=False):
    """A question that nobody has answered; `page` is where a person may, empty if there is none.

    `there_only`: on no other way.
    """

    question: Question
    reply: Reply[msgspec.Raw]
    page: str = ""
    there_only: bool = False


class Rounds:
    """One call of a client that is asked by its answers; implements `actors.messages.Caller`.

    `by_result`: forms that a client did not declare are kept as well, to be told by an ordinary result.
    """

    __slots__ = ("_asked", "_exchange", "_last", "_on_pages", "_open", "_required", "_turn", "by_result", "lacked")

    def __init__(self, exchange: Exchange, *, by_result: bool = False) -> None:
        self._exchange: Exchange | None = exchange
        self._last = exchange
        self.by_result = by_result
        self._open: dict[str, _Open] = {}
        self._on_pages: set[Reply[msgspec.Raw]] = set()
        self._asked = 0
        self._turn: trio.Event | None = None
        self._required: dict[str, Reply[msgspec.Raw]] = {}
        self.lacked: dict[str, Any] = {}
        """Capabilities that the client would have needed for a question that was not asked."""

    @property
    def answers(self) -> dict[str, msgspec.Raw]:
        return {key: reply.value for key, reply in self._required.items() if reply.value is not None}

    @property
    def questions(self) -> dict[str, ToldQuestion]:
        """The questions that nobody has answered, by their keys, for a client that is told of them by a result."""
        return {
            key: ToldQuestion(InputRequest(each.question.method, each.question.params), each.page, each.there_only)
            for key, each in self._open.items()
        }

    @property
    def requests(self) -> dict[str, InputRequest]:
        known = {key: each.question for key, each in self._open.items() if not self._last.lacks(each.question)}
        by = self._last.asked_by
        return {key: InputRequest(each.method, label(by, each.method, each.params)) for key, each in known.items()}

    def note(self, note: Note) -> bool:
        exchange = self._exchange
        if exchange is None:
            return False
        if self._asked == 0:  # nearly always: its first request is the only one
            return exchange.note(note)
        if note.method != PROGRESS:
            return exchange.wish.log_level is not None and exchange.note(note)
        token = exchange.wish.progress  # each request has a token of its own
        if not token:
            return False
        return exchange.note(Note(note.method, with_progress_token(note.params, token)))

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        last, lacks, elicitations = self._last, self._last.lacks(question), self._last.elicitations
        if not lacks and self._exchange is not None and last.client.era == "legacy":
            return self._exchange.ask(question)
        told = self.by_result and question.method == ELICIT
        reply: Reply[msgspec.Raw] = Reply()
        question = Question(question.method, with_token(question.params, b""))
        try:
            if not lacks or told:
                self._keep(f"question-{self._asked + 1}", question, reply, told=bool(lacks))
            elif elicitations is not None and last.reaches_people(question):
                last.admit(question, reply)
                elicitations.offer(question, reply)
                self._on_pages.add(reply)
                reply.on_settled(lambda: self._on_pages.discard(reply))
            else:
                self.lacked.update(
                    requirement(missing_capability(last.client.capabilities, question.method, question.params))
                )
                raise CannotAsk(lacks)
        except CannotAsk as error:
            reply.fail(error)
        return reply

    @property
    def by_model(self) -> bool:
        """Whether a form is told to a model; see `CallServer`."""
        last = self._last
        return self.by_result if last.lacks(_FORM) else last.asks_later and last.client.era == "modern"

    @property
    def program(self) -> ClientKey:
        return self._last.client.program

    @property
    def identity(self) -> ClientKey:
        return self._last.identity

    def visitor(self, question: Question | None = None) -> Visitor | None:
        return self._exchange.visitor(question) if self._exchange is not None else None

    def require(self, requests: Mapping[str, InputRequest], *, there_only: bool = False) -> None:
        """Keep questions under keys of their own, until `answers` has those; `there_only`: from a page.

        Raises `CannotAsk` for what the client cannot be asked so.
        """
        try:
            for key, request in requests.items():
                question = Question(request.method, request.params)
                if question.method != ELICIT or refusal(question.method, question.params):
                    raise CannotAsk(self._last.lacks(question) or "it cannot be asked by a result")
                reply: Reply[msgspec.Raw] = Reply()
                self._required[key] = reply
                self._keep(key, question, reply, told=self.by_result, there_only=there_only)
        except CannotAsk:
            self.close()
            raise

    def _keep(
        self, key: str, question: Question, reply: Reply[msgspec.Raw], *, told: bool, there_only: bool = False
    ) -> None:
        """Keep a question until it is settled. `told`: by a result; what is secret is answered on a page only then."""
        if len(self._open) >= MAX_OPEN:
            raise CannotAsk(f"{len(self._open)} questions of this call wait for an answer already")
        self._last.admit(question, reply)
        page, elicitations = "", self._last.elicitations
        if told:
            size = sum(len(asked.question.params) for asked in (*self._open.values(), _Open(question, reply)))
            if size > MAX_FORM_BYTES:
                raise CannotAsk(f"{size} bytes of questions at once; a result tells of {MAX_FORM_BYTES} at most")
            there_only = there_only or is_secret(question.params)
            page = self._page(question, reply)
            if there_only and not page:
                raise CannotAsk("only a person may answer this, on a page of the daemon, and there is none for it")
        elif elicitations is not None:
            elicitations.on_asked(question, reply)
        self._asked += 1
        self._open[key] = _Open(question, reply, page, told and there_only)
        reply.on_settled(lambda: self._forget(key))
        if self._turn is not None:
            self._turn.set()

    def _page(self, question: Question, reply: Reply[msgspec.Raw]) -> str:
        if (elicitations := self._last.elicitations) is None:
            return ""
        try:
            return elicitations.offer(question, reply, repeats=True)
        except CannotAsk:
            elicitations.on_asked(question, reply)
            return ""

    async def settled(self, reply: Reply[Result]) -> bool:
        """Wait until a call has its result, or there is something to ask; return whether it has its result.

        Cancelling it abandons the call. A checkpoint if it waits.
        """
        try:
            while not reply.settled:
                self._turn = turn = trio.Event()
                reply.on_settled(turn.set)
                if self._open:
                    turn.set()
                await turn.wait()
                if not reply.settled:
                    await self._gather(reply)
                if self._open:  # its server may have taken it back
                    break
        except trio.Cancelled as cancelled:
            reply.abandon(given_reason(cancelled))
            raise
        finally:
            self._turn = None
        return reply.settled

    async def _gather(self, reply: Reply[Result]) -> None:
        """Wait a moment for what is asked at the same time, or for the result."""
        over = trio.Event()
        reply.on_settled(over.set)
        with trio.move_on_after(TOGETHER_S):
            await over.wait()

    def pause(self) -> None:
        """The client gets a round of questions: its request is over."""
        self._exchange = None

    def continues_with(self, exchange: Exchange, *, by_result: bool) -> bool:
        """Say whether a request can be told what else is asked: in the era of the first, `by_result` where that was."""
        return exchange.client.era == self._last.client.era and (by_result or not self.by_result)

    def go_on(self, exchange: Exchange, answers: Mapping[str, msgspec.Raw]) -> None:
        """The client has made its request again. Questions without an answer stay open, other answers mean nothing."""
        exchange.allowance = self._last.allowance
        self._exchange = self._last = exchange
        for key, asked in list(self._open.items()):  # there may be very many answers
            if key in answers and not asked.there_only:
                asked.reply.answer(answers[key])

    def close(self, why: str = "nobody came back with an answer") -> None:
        if self._open or self._on_pages:  # of most calls nobody asks anything
            for reply in [*(asked.reply for asked in self._open.values()), *self._on_pages]:
                reply.fail(CannotAsk(why))

    def _forget(self, key: str) -> None:
        self._open.pop(key, None)


# Calls of modern clients that wait for input: parked between two requests, until the client makes its request again.
#
# A modern client gets no requests; what a legacy server asks during its call becomes an `input_required` result,
# answered by a second request (MCP 2026-07-28, basic/patterns/mrtr). The call itself goes on, at the one process that
# knows of it.
#
# Rules:
# - A call is parked before its result is written, and is never run again: a retry goes on with it, or fails.
# - `requestState` is ours alone: a random name under the daemon's seal, used up by the retry that answers. What it is
#   bound to (principal, request, server) is kept here, so that a retry that differs is told why, and costs the call
#   nothing.
# - Exactly one retry goes on with a call; every other one is told what became of it, as far as that is known.
# - A call that nobody comes back for is given up after its time, and its server is told so. Nothing outlives the
#   daemon.

MAX_PARKED: Final = 1024
"""Of all clients, which share it; see `actors.kit.fairness.quota`."""
SWEPT: Final = 16
"""Calls that are given up at a time, each with up to 32 questions: all at once would hold up everybody."""
GRACE_S: Final = 2.0
"""A question has its own time, after which the server is answered; its call has this time more."""
_NAME_BYTES: Final = 16
_MAC_BYTES: Final = 16
_MAX_CHARS: Final = 160


class SealedNames:
    """Names of one kind that clients are given: random, under the daemon's seal, and recognised in later runs, too.

    One with an owner means no more than a made-up one to whoever else shows it. `label` tells the kind from others,
    `key` is the daemon's.
    """

    def __init__(self, key: bytes, label: bytes, prefix: str = "", life: DaemonLife | None = None) -> None:
        self._life = life or DaemonLife()
        self._keys = [hmac.digest(each, label, hashlib.sha256) for each in (key, *self._life.older_keys)]
        self._prefix = prefix
        self._boot = self._life.own or secrets.token_bytes(LIFE_BYTES)

    def make(self, owner: str = "") -> str:
        body = self._boot + secrets.token_bytes(_NAME_BYTES)
        return self._prefix + base64.urlsafe_b64encode(body + _mac(self._keys[0], body, owner)).decode()

    def is_given(self, name: str, owner: str = "") -> bool:
        return self._boot_of(name, owner) is not None

    def is_of_this_run(self, name: str, owner: str = "") -> bool:
        return self._boot_of(name, owner) == self._boot

    def check_here(self, name: str, owner: str, error: SupervisorError) -> None:
        """Raise `HeldElsewhere` for a name that another node of the fleet has given."""
        self._life.check_here(self._boot_of(name, owner), error)

    def _boot_of(self, name: str, owner: str) -> bytes | None:
        if not name.startswith(self._prefix) or len(name) > _MAX_CHARS:
            return None
        try:
            sealed = base64.b64decode(name[len(self._prefix) :], altchars=b"-_", validate=True)
        except ValueError:
            return None
        body, mac = sealed[:-_MAC_BYTES], sealed[-_MAC_BYTES:]
        good = any(hmac.compare_digest(mac, _mac(key, body, owner)) for key in self._keys)
        return body[:LIFE_BYTES] if good and len(body) == LIFE_BYTES + _NAME_BYTES else None


def _mac(key: bytes, body: bytes, owner: str) -> bytes:
    return hmac.digest(key, body + owner.encode(), hashlib.sha256)[:_MAC_BYTES]


class Parked(msgspec.Struct, frozen=True, eq=False):
    """A call that waits. `digest` is that of its request, `expires` a moment of the trio clock.

    `reply` is None where nothing is under way: the request is made anew when its client has done what it was asked to,
    with its answers if they are those that a modern server `required`. `unconfirmed`: the user has to say yes first;
    `plugin`: one has asked something first.
    """

    principal: Principal
    digest: bytes
    expires: float
    reply: Reply[Result] | None
    rounds: Rounds
    required: InputRequired | None = None
    unconfirmed: bool = False
    plugin: str = ""

    def answers_in(self, retry: Retry, given: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
        """Return the answers that count: what a client is asked itself no model answers that knows the state."""
        return {} if retry.ours and not self.rounds.by_result else given


class Parking:
    """All parked calls. `key` is the daemon's; `run` has to run somewhere."""

    def __init__(self, key: bytes, life: DaemonLife | None = None) -> None:
        self._states = SealedNames(key, b"mcp-request-state", PREFIX, life)
        self._parked: dict[str, Parked] = {}
        self._programs: dict[str, ClientKey] = {}
        self._quota = ClientQuota(MAX_PARKED)
        self._closed = False
        self._bell = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, parked: Parked) -> str:
        """Keep a call and return the state that its client has to send back. Raises `CannotAsk` if it cannot wait."""
        if self._closed:
            raise CannotAsk("the daemon is ending: nobody can come back with an answer")
        program = parked.rounds.program
        if not self._quota.has_room(program):
            raise CannotAsk(f"{self._quota.amount_of(program)} calls of this client wait for input already")
        state = self._states.make()
        self._parked[state], self._programs[state] = parked, program
        self._quota.add(program)
        self._bell.unpark()
        return state

    def park_and_ask(self, parked: Parked, server: str, *, by_result: bool) -> AskedByResult | InputNeeded:
        """Park a call whose client is to make its request again, and return what asks it. Raises as `park` does."""
        rounds = parked.rounds
        if by_result:
            left_s = parked.expires - GRACE_S - trio.current_time()
            state, confirms = self.park(parked), parked.unconfirmed
            return AskedByResult(server, rounds.questions, state, left_s, parked.plugin, confirms=confirms)
        return InputNeeded(incomplete_result(rounds.requests, self.park(parked)))

    def is_given(self, state: str) -> bool:
        """Say whether a state was given to anybody, in this run or in an earlier one: then it goes to no server."""
        return self._states.is_given(state)

    def find(self, state: str, principal: Principal, digest: bytes) -> Parked:
        """Return the call that a retry is about; it stays parked. Raises `MalformedRequest` and `HeldElsewhere`."""
        if not self._states.is_given(state):
            raise MalformedRequest("requestState: not one that was given here")
        if not self._states.is_of_this_run(state):
            waits = "requestState: the call waits at another node of the fleet; make this request there"
            self._states.check_here(state, "", MalformedRequest(waits))
            text = "the daemon was started again since: the call is lost, and whether it was carried out is not known"
            raise MalformedRequest(f"requestState: {text}; look before you make it again", outcome="unknown")
        parked = self._parked.get(state)
        if parked is None or parked.principal != principal or parked.expires <= trio.current_time():
            raise MalformedRequest("requestState: used already, or its time is over; make the request anew")
        if parked.digest != digest:
            raise MalformedRequest("requestState: of another request; only the answers may differ in one made again")
        return parked

    def take(self, state: str) -> None:
        if self._parked.pop(state, None) is not None:
            self._quota.remove(self._programs.pop(state))

    async def run(self, closing: trio.Event) -> None:
        """Give up the calls whose time is over, and all when `closing` is set: nobody can come back from then on."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            await closing.wait()
            nursery.cancel_scope.cancel()
        self._closed = True
        self._give_up(math.inf)

    async def _watch(self) -> None:
        while True:
            while not self._parked:
                await self._bell.park()
            with trio.move_on_at(min(parked.expires for parked in self._parked.values())):
                await self._bell.park()  # what is parked later may be due sooner
            while self._give_up(trio.current_time(), SWEPT):
                await trio.lowlevel.checkpoint()

    def _give_up(self, now: float, most: int = MAX_PARKED) -> int:
        over = [each for each in self._parked.items() if each[1].expires <= now][:most]
        for state, parked in over:
            self.take(state)
            parked.rounds.close()
            if parked.reply is not None:
                parked.reply.abandon()
        return len(over)


def digest_of(server: str, method: str, members: bytes) -> bytes:
    """Return what makes a request the same one when it is made again."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (server.encode(), method.encode(), members):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


# How a question of the daemon reaches the user of a client, and how the answer comes back, whatever the client can do.
#
# It goes the way of a question of a server: by a request, by an incomplete result, or in a result of a meta-tool.
# Nothing is sent to a server meanwhile. Where the answer comes with a second request, the call is parked.


class UserRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question of ours about a call of a server, whose request has this `digest`.

    `key` is what it is called where it goes by a result. There it is good for a person on a page alone if it is to be
    answered `there_only`. `confirms`: it is whether a tool may run; `plugin` is who asks, if that is one.
    """

    question: Question
    key: str
    server: str
    digest: bytes
    within_s: float
    there_only: bool
    confirms: bool = False
    plugin: str = ""


async def ask_user(parking: Parking, exchange: Exchange, asked: UserRequest, *, by_result: bool) -> msgspec.Raw | None:
    """Return what the user of a client answers; None where nobody does in time, or the client refuses.

    Raises `CannotAsk` for a client that cannot be asked, and `InputNeeded` or `AskedByResult` for one that is to make
    its request again: `take_answer` has the answer then.
    """
    lacks = exchange.lacks(asked.question)
    if lacks and not by_result and not exchange.reaches_people(asked.question):
        raise CannotAsk(lacks, server=asked.server)
    if (usual := exchange.elicitations) is not None:
        exchange.elicitations = msgspec.structs.replace(usual, timeout_s=asked.within_s, confirms=asked.confirms)
    if not by_result if lacks else exchange.client.era == "legacy":
        answer = await _ask_client(exchange, asked.question, asked.within_s)
        exchange.elicitations = usual
        return answer
    rounds = Rounds(exchange, by_result=bool(lacks))
    request = InputRequest(asked.question.method, asked.question.params)
    rounds.require({asked.key: request}, there_only=asked.there_only)
    expires = trio.current_time() + asked.within_s + GRACE_S
    parked = Parked(
        exchange.client.principal,
        asked.digest,
        expires,
        None,
        rounds,
        unconfirmed=asked.confirms,
        plugin=asked.plugin,
    )
    raise parking.park_and_ask(parked, asked.server, by_result=rounds.by_result)


def take_answer(
    parking: Parking, exchange: Exchange, parked: Parked, answers: Mapping[str, msgspec.Raw], key: str, server: str
) -> msgspec.Raw | None:
    """Return what came for a parked question with the request that is made again; None for nothing.

    Raises `AskedByResult` where a person may still answer on the page, and `InputNeeded` where a model goes on with one
    of several calls: only now its client is asked.
    """
    rounds = parked.rounds
    rounds.go_on(exchange, answers)
    answer = rounds.answers.get(key)
    if answer is None and (rounds.by_result or (exchange.retry is not None and exchange.retry.ours)):
        raise parking.park_and_ask(parked, server, by_result=rounds.by_result)
    rounds.close()
    return answer


async def _ask_client(exchange: Exchange, question: Question, timeout_s: float) -> msgspec.Raw | None:
    reply = exchange.ask(question)
    with trio.move_on_after(timeout_s):
        try:
            return await reply.wait()
        except RemoteError:
            return msgspec.Raw(b"{}")
    return None
