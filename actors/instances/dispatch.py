"""The calls of a launch with several instances: which of them each goes to, and what becomes of it if that fails.

- A call is put to an instance with a reply of its own. So what was certainly not sent, because an instance went down or
  did not come up, goes to another one, and nothing else ever does.
- What only one process knows (a task, a question that was asked by a result) reaches that process, or fails.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
import trio
from msgspec.structs import replace

from actors.errors import (
    ActorStopped,
    BreakerTripped,
    MalformedRequest,
    ProtocolViolation,
    ServerExited,
    ServerGaveUp,
    ServerStarting,
    SupervisorError,
)
from actors.instances.choice import choose
from actors.instances.instance import Instance
from actors.kit import Address, Reply
from actors.messages import CallServer, Result, WakeServer
from actors.principal import LOCAL, ClientKey
from actors.protocol.asking import input_required
from actors.protocol.changes import OF_RESOURCES
from actors.protocol.wire import json
from actors.server.calls.errors import Delay, late_error, lost_task_error
from actors.server.parts.recovery import STARTING_RETRY_S
from actors.server.settings import ServerSettings

PATIENCE_S = 2.0
"""For so long a call waits for an instance that is free while another one is up and busy: then it goes to that."""
MAX_STATES: Final = 4096
"""Of one launch; the oldest is forgotten for one more."""
_retry = msgspec.json.Decoder(input_required.Retry)
_NOT_TAKEN: Final = (ServerStarting, ServerGaveUp, ServerExited, ActorStopped, BreakerTripped)
"""What a call gets from an instance that was not up, went down, or has a breaker open.

Only what was not sent is tried elsewhere.
"""
START_PAUSE_S: Final = 5.0
"""An instance that could not be started is not tried again before that, unless it says when."""


class WaitingCall(msgspec.Struct, eq=False):
    """A call that no instance has. `deadline` and `since` are moments of the trio clock.

    `refused_by` are the runs of the instances that gave it back.
    """

    message: CallServer
    reply: Reply[Result]
    since: float
    deadline: float
    refused_by: tuple[str, ...] = ()


class WaitingCalls:
    """The calls of a launch that wait until one of its instances is free or up, the oldest first. Bounded. Pure.

    At most `max_calls`, and `max_bytes` of their arguments.
    """

    def __init__(self, max_calls: int, max_bytes: int) -> None:
        self._max_calls = max_calls
        self._max_bytes = max_bytes
        self._calls: deque[WaitingCall] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._calls)

    def has_room(self, call: WaitingCall) -> bool:
        return len(self._calls) < self._max_calls and self._bytes + _size(call) <= self._max_bytes

    def add(self, call: WaitingCall) -> None:
        self._calls.append(call)
        self._bytes += _size(call)

    def oldest(self) -> WaitingCall | None:
        """Return the oldest; those that nobody waits for any more are forgotten."""
        while self._calls and self._calls[0].reply.settled:
            self.take()
        return self._calls[0] if self._calls else None

    def take(self) -> WaitingCall:
        call = self._calls.popleft()
        self._bytes -= _size(call)
        return call

    def take_late(self, now: float) -> list[WaitingCall]:
        """Take those whose deadline has passed."""
        late = [call for call in self._calls if call.deadline <= now]
        if late:
            left = [call for call in self._calls if call.deadline > now]
            self._calls, self._bytes = deque(left), sum(map(_size, left))
        return late

    def take_all(self) -> Iterator[WaitingCall]:
        while self._calls:
            yield self.take()

    def is_patience_over(self, now: float) -> bool:
        """Say whether the oldest has waited for long enough."""
        return bool(self._calls) and self._calls[0].since + PATIENCE_S <= now

    def next_moment(self, *, busy: bool) -> float | None:
        """Return when something is to be done of them: a deadline, or the end of patience where some are `busy`."""
        moments = [call.deadline for call in self._calls]
        if busy and self._calls:
            moments.append(self._calls[0].since + PATIENCE_S)
        return min(moments, default=None)


def _size(call: WaitingCall) -> int:
    return len(call.message.members) + len(call.message.meta) + len(call.message.retry)


class Giver(msgspec.Struct, frozen=True):
    """The instance that gave a state, and the process that it was then."""

    number: int
    run: str


class GivenStates:
    """Which instance gave which `requestState`: a client that goes on with one must reach the process that knows it.

    (MCP 2026-07-28, basic/patterns/mrtr.) A state is known by its digest, so that it costs the same whatever its size.
    It counts for one user and one request only: servers may say the same to several, such as the number of a step.
    """

    def __init__(self) -> None:
        self._givers: OrderedDict[bytes, Giver] = OrderedDict()

    def note(self, message: CallServer, result: Result, giver: Giver) -> bool:
        """Note the state of a result that is not complete; False if it has none."""
        if result.era != "modern" or message.method not in input_required.METHODS:
            return False
        if len(result.body) > input_required.MAX_BYTES or not input_required.is_incomplete(result.body):
            return False
        try:
            state = input_required.state_of(input_required.Retry(state=input_required.read(result.body).state))
        except (ProtocolViolation, MalformedRequest):  # whoever passes it on says so
            return False
        if state:
            self._givers[_digest(message, state)] = giver
            if len(self._givers) > MAX_STATES:
                self._givers.popitem(last=False)
        return bool(state)

    def find(self, message: CallServer) -> tuple[str, Giver | None]:
        """Return the state that a request goes on with, empty if it has none, and who gave that, if it is known.

        Raises `MalformedRequest` if it is no string.
        """
        if not message.retry:
            return "", None
        retry = json.read_or(_retry, b"{" + message.retry + b"}", input_required.Retry())
        state = input_required.state_of(retry)
        return state, self._givers.get(_digest(message, state)) if state else None


def _digest(message: CallServer, state: str) -> bytes:
    """Return by what the state of this request is known."""
    parts = (message.principal, message.method, message.name, state)
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


class InstanceDispatch:
    """Chooses for one launch. `instances` are by number, in that order.

    `leader` gives the one that leads, `free` is called when others may go on that wait, in the task of any actor. `own`
    gives the instance of one client, where each has its own, and raises `TooManyCalls` if there are too many.
    """

    def __init__(
        self,
        server: str,
        instances: Mapping[int, Instance],
        leader: Callable[[], Instance],
        settings: ServerSettings,
        free: Callable[[], None],
        own: Callable[[ClientKey], Instance] | None = None,
    ) -> None:
        self._server = server
        self._instances = instances
        self._leader = leader
        self._question_s = settings.question_timeout_s
        self._free = free
        self.own = own
        self._states = GivenStates()
        self._first_run = leader().seat.run
        self._first_until = trio.current_time() + settings.question_timeout_s
        self.waiting = WaitingCalls(settings.max_queued, settings.max_queued_bytes)
        self._over = False

    def take(self, message: CallServer, reply: Reply[Result]) -> None:
        """Take a new call. Whoever settles it is not the actor that takes it."""
        reply.release()
        now = trio.current_time()
        call = WaitingCall(message, reply, now, now + message.deadline_s)
        try:
            bound = self._bound(message)
        except SupervisorError as error:
            reply.fail(error)
            return
        if bound is not None:
            self._put(bound, call)
        elif self.waiting or not self._place(call):
            self._wait(call)

    def _bound(self, message: CallServer) -> Instance | None:
        """Return the one instance that can have a call, None if any can. Raises if that is gone."""
        if message.run:
            if (known := self._find(message.run)) is None:
                raise lost_task_error(self._server)
            return known
        if message.method in OF_RESOURCES:
            return self._leader()
        state, giver = self._states.find(message)
        if not state:
            return None if self.own is None or message.exchange is None else self.own(message.client)
        run = giver.run if giver is not None else ""
        if giver is None and trio.current_time() < self._first_until:  # it may have been given before there were others
            run = self._first_run
        if (known := self._find(run)) is None:
            text = f"server {self._server!r}: the instance that asked this has ended; make the request anew"
            raise ServerExited(text, server=self._server)
        return known

    def _find(self, run: str) -> Instance | None:
        alive = (each for each in self._instances.values() if not each.leaving)
        return next((each for each in alive if run and each.seat.run == run), None)

    # Calls that wait ------------------------------------------------------------------------------------------------

    def _wait(self, call: WaitingCall) -> None:
        """Have a call wait until it has its turn; without room it goes to whom it would go to in the end."""
        if self.waiting.has_room(call):
            self.waiting.add(call)
            self.pump()
        elif not self._place(call, patient=False):
            self._put(self._leader(), call)

    def pump(self) -> None:
        """Send what can be sent now."""
        now = trio.current_time()
        for late in self.waiting.take_late(now):
            delay = Delay(": none of its instances was free or came up in time", STARTING_RETRY_S)
            late.reply.fail(late_error(late.message, None, delay))
        while (call := self.waiting.oldest()) is not None:
            if not self._place(call, patient=not self.waiting.is_patience_over(now)):
                return
            self.waiting.take()

    def end(self, successor: Address[Any] | None) -> None:
        """Have no more tries be made: those who wait are passed on, or hear from the leader why not."""
        self._over = True
        for call in self.waiting.take_all():
            if successor is None:
                self._put(self._leader(), call)
            else:
                successor.forward(call.message.passed_on(call.deadline - trio.current_time()), call.reply)

    def next_moment(self) -> float | None:
        """Return when `pump` is due though nothing happens."""
        return self.waiting.next_moment(busy=any(each.up for each in self._instances.values()))

    def _place(self, call: WaitingCall, *, patient: bool = True) -> bool:
        """Give a call to an instance, starting others for those that wait; False if it has to wait."""
        now = trio.current_time()
        while True:
            open_to_all = [each for each in self._instances.values() if each.client is None and not each.leaving]
            ready = [each for each in open_to_all if not each.refuses(call.message.tool, now)]
            free = [each.candidate(now, call.refused_by) for each in ready or open_to_all]
            choice = choose(free, self._leader().number, max(1, len(self.waiting)), patient=patient)
            if choice.start is not None:
                self.start(self._instances[choice.start])
            elif choice.to is None:
                return False
            else:
                self._put(self._instances[choice.to], call)
                return True

    def start(self, instance: Instance) -> None:
        """Wake an instance for a call that waits."""
        instance.starting = True
        try:
            woken = instance.post.request(WakeServer(server=self._server, principal=LOCAL))
        except SupervisorError as error:
            self._on_start(instance, error)
        else:
            woken.on_settled(lambda: self._on_start(instance, woken.failure))

    def _on_start(self, instance: Instance, failure: Exception | None) -> None:
        instance.starting = False
        if isinstance(failure, SupervisorError):
            pause_s = failure.retry_after_s or START_PAUSE_S
            instance.not_before = max(instance.not_before, trio.current_time() + pause_s)
        if self.waiting:
            self._free()

    # Calls that an instance has -------------------------------------------------------------------------------------

    def _put(self, instance: Instance, call: WaitingCall) -> None:
        message, reply, held_s = call.message, call.reply, trio.current_time() - call.since
        if held_s:
            message = message.passed_on(call.deadline - trio.current_time())
        try:
            given = instance.post.request(message)
        except SupervisorError as error:
            reply.fail(error)
            return
        instance.open += 1
        reply.on_abandon(lambda: given.abandon(reply.abandoned_for))
        run = instance.seat.run
        given.on_settled(lambda: self._on_settled(instance, run, call, given, held_s))

    def _on_settled(self, instance: Instance, run: str, call: WaitingCall, given: Reply[Result], held_s: float) -> None:
        instance.open -= 1
        error, result = given.failure, given.value
        if result is not None:
            if self._states.note(call.message, result, Giver(instance.number, instance.seat.run)):
                instance.seat.expected_until = trio.current_time() + self._question_s
            call.reply.answer(replace(result, waited_s=result.waited_s + held_s) if held_s else result)
        elif isinstance(error, _NOT_TAKEN) and error.outcome == "not_sent" and self._may_try_again(call):
            call.refused_by += (run,)
            self.waiting.add(call)
            self._free()
            return
        elif error is not None:
            call.reply.fail(error)
        if self.waiting:
            self._free()

    def _may_try_again(self, call: WaitingCall) -> bool:
        if self._over or call.reply.settled or trio.current_time() >= call.deadline:
            return False
        return len(call.refused_by) < len(self._instances) - 1 and self.waiting.has_room(call)
