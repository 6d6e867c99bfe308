"""The calls of one server: each settles once, and says what is known of its execution."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.trust import TRUSTING
from actors.errors import ServerGaveUp, SupervisorError, TooManyCalls
from actors.facts import FactLog
from actors.kit import Mark, Outbox, Reply
from actors.launch import launch_name
from actors.life.breakers import Breakers
from actors.messages import CallServer, Result
from actors.principal import LOCAL, Principal
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from actors.server.calls.calls import CallBreakers, Calls
from actors.server.calls.errors import Delay
from actors.server.calls.gate import ApprovalGate
from actors.server.calls.queue import Call
from actors.server.calls.state_loss import StateLoss
from actors.server.lists import Lists
from actors.server.settings import ServerSettings

DEFAULT = ServerSettings()
RESULT = Result(msgspec.Raw(b"{}"), "legacy")


ANA, BEN = Principal("user:ana"), Principal("user:ben")


def calls_of_server(
    name: str = "s", settings: ServerSettings = DEFAULT, wake_by: Callable[[float], None] = lambda moment: None
) -> Calls:
    gate = ApprovalGate(name, TRUSTING, Lists(name, settings, None, lambda: False))
    breakers = CallBreakers(name, name, Breakers(settings, lambda: 0.5), FactLog(lambda: 0.0))
    loss = StateLoss(settings, lambda: None)
    return Calls(name, settings, str, lambda _: (), gate, breakers, loss, lambda: 0.5, wake_by)


def time_out(calls: Calls, now: float) -> None:
    calls.time_out(now, None, Delay("", 5.0))


def admit(
    calls: Calls, now: float = 0.0, deadline_s: float = 60.0, principal: Principal = LOCAL, *, lasts: bool = False
) -> Call:
    method = "events/stream" if lasts else "tools/call"
    message = CallServer(
        server="s", method=method, members=b"", deadline_s=deadline_s, principal=principal, lasts=lasts
    )
    return calls.enter(message, Reply(), now)


def error_of(call: Call) -> SupervisorError:
    error = call.reply._error
    assert isinstance(error, SupervisorError)
    return error


def anything(size: int) -> Mark | None:
    """The place of something that has left."""
    return Mark(Outbox(1, 1), -size)


def nothing(size: int) -> Mark | None:
    """The place of something of which no byte has left."""
    return Mark(Outbox(1, 1), size)


def test_calls_are_sent_in_order_up_to_the_limit() -> None:
    calls = calls_of_server()
    made = [admit(calls) for _ in range(5)]
    assert list(calls.sendable(2, 0.0, anything)) == made[:2]
    assert list(calls.sendable(2, 0.0, anything)) == []
    assert (calls.in_flight, len(calls.waiting), calls.total) == (2, 3, 5)
    assert calls.take(made[0].number) is made[0]
    assert calls.take(made[0].number) is None
    assert list(calls.sendable(2, 0.0, anything)) == [made[2]]


@pytest.mark.case("C23")
def test_whoever_has_fewest_in_flight_is_next() -> None:
    calls = calls_of_server()
    of_ana = [admit(calls, principal=ANA) for _ in range(5)]
    assert list(calls.sendable(2, 0.0, anything)) == of_ana[:2]
    of_ben = [admit(calls, principal=BEN) for _ in range(3)]
    assert list(calls.sendable(6, 0.0, anything)) == [of_ben[0], of_ben[1], of_ana[2], of_ben[2]]
    assert list(calls.sendable(10, 0.0, anything)) == of_ana[3:]


@pytest.mark.case("C23")
@pytest.mark.parametrize(
    ("server", "principal", "most"), [("s", ANA, 4), (launch_name("s", "d1"), ANA, 8), ("s", LOCAL, 8)]
)
def test_nobody_takes_all_of_a_server_that_is_for_others_too(server: str, principal: Principal, most: int) -> None:
    calls = calls_of_server(server, ServerSettings(max_in_flight=2, max_queued=6))
    for _ in range(most):
        admit(calls, principal=principal)
    with pytest.raises(TooManyCalls, match=r"calls of yours are open|calls are in flight"):
        admit(calls, principal=principal)
    if most < 8:
        for _ in range(2):
            admit(calls, principal=BEN)
        with pytest.raises(TooManyCalls, match="2 calls of yours are open"):
            admit(calls, principal=BEN)
        list(calls.sendable(2, 0.0, anything))
        calls.fail_in_flight("it ended", 0.0)
        admit(calls, principal=BEN)


@pytest.mark.parametrize("principal", [ANA, LOCAL])
def test_streams_take_no_room_of_calls(principal: Principal) -> None:
    calls = calls_of_server(settings=ServerSettings(max_in_flight=2, max_queued=2))
    for _ in range(20):
        stream = admit(calls, principal=principal, lasts=True)
        assert list(calls.sendable(2, 0.0, anything)) == [stream]
    made = [admit(calls, principal=principal) for _ in range(2)]
    assert list(calls.sendable(2, 0.0, anything)) == made
    assert calls.in_flight == 22


def test_a_call_in_flight_at_the_exit_has_an_unknown_outcome_and_a_waiting_one_was_not_sent() -> None:
    calls = calls_of_server()
    first, second = admit(calls), admit(calls)
    list(calls.sendable(1, 0.0, anything))
    calls.fail_in_flight("exit code 1", 0.0)
    calls.fail_waiting(lambda: ServerGaveUp("no"))
    assert (error_of(first).kind, error_of(first).outcome) == ("crashed", "unknown")
    assert (error_of(second).kind, error_of(second).outcome) == ("unavailable", "not_sent")
    assert (calls.in_flight, len(calls.waiting), calls.failures) == (0, 0, 2)


def test_calls_of_which_no_byte_left_wait_in_their_old_places_as_if_they_had_not_been_sent() -> None:
    calls = calls_of_server()
    sent = [admit(calls, deadline_s=30) for _ in range(2)]
    list(calls.sendable(2, 0.0, nothing))
    assert [call.reply.queued for call in sent] == [False, False]
    later = admit(calls)
    calls.fail_in_flight("it ended", 1.0)
    assert list(calls.waiting.values()) == [*sent, later]
    assert calls._queue.size == sum(call.size for call in (*sent, later))
    assert [(call.reply.queued, call.left) for call in sent] == [(True, False)] * 2
    assert list(calls.sendable(1, 2.0, anything)) == sent[:1]
    time_out(calls, 30)
    assert [(error_of(call).kind, error_of(call).outcome) for call in sent] == [
        ("timeout", "unknown"),
        ("starting", "not_sent"),
    ]


def test_a_call_refused_for_its_headers_by_a_server_that_ended_is_not_refused_by_the_next_one() -> None:
    calls = calls_of_server()
    call = admit(calls)
    list(calls.sendable(1, 0.0, anything))
    call.refused, call.mirrors, call.mark = RemoteError(ErrorObject(-32020, "other headers")), (), None
    calls.fail_in_flight("it ended", 1.0)
    assert list(calls.sendable(1, 2.0, anything)) == [call]
    calls.on_listed()
    assert (calls.in_flight, call.reply.settled) == (1, False)


def test_deadlines_fail_by_whether_the_call_was_sent() -> None:
    calls = calls_of_server()
    sent, waiting, later = admit(calls), admit(calls, deadline_s=30), admit(calls, deadline_s=500)
    list(calls.sendable(1, 0.0, anything))
    assert calls.next_moment() == 30
    time_out(calls, 30)
    assert (error_of(waiting).kind, error_of(waiting).outcome) == ("starting", "not_sent")
    assert not sent.reply.settled
    time_out(calls, 60)
    assert (error_of(sent).kind, error_of(sent).outcome) == ("timeout", "unknown")
    assert not later.reply.settled
    assert (calls.next_moment(), calls.in_flight, len(calls.waiting)) == (500, 0, 1)


def test_a_call_whose_client_went_away_keeps_its_place_until_its_deadline() -> None:
    calls = calls_of_server()
    call = admit(calls)
    list(calls.sendable(1, 0.0, anything))
    call.reply.abandon()
    assert calls.next_moment() == 60
    time_out(calls, 60)
    assert (calls.in_flight, calls.failures, calls.next_moment()) == (0, 0, None)


def test_settled_calls_do_not_pile_up_behind_an_old_one() -> None:
    calls = calls_of_server()
    admit(calls)
    list(calls.sendable(1, 0.0, anything))
    for _ in range(5000):
        call = admit(calls)
        list(calls.sendable(2, 0.0, anything))
        calls.take(call.number)
    assert len(calls._deadlines._heap) < 200
    assert calls.next_moment() == 60


STEPS = ("admit", "send", "answer", "drop", "exit", "expire", "abandon", "stand still", "go on")


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30))))
def test_each_call_settles_in_a_time_that_is_told_and_nothing_is_left(steps: list[tuple[str, int]]) -> None:
    told, now, made = list[float](), 0.0, list[Call]()
    calls = calls_of_server(wake_by=told.append)
    for what, number in steps:
        now += number
        some = made[number % len(made)] if made else None
        match what:
            case "admit":
                made.append(admit(calls, now, 1.0 + number))
            case "send":
                assert all(call.sent_at is not None for call in calls.sendable(number, now, anything))
            case "answer" if some is not None and (found := calls.take(some.number)):
                found.reply.answer(RESULT)
            case "drop" if some is not None:
                some.reply.abandon()
                calls.drop(some.number)
            case "abandon" if some is not None:
                some.reply.abandon()
            case "stand still" if some is not None and some.number in calls.waiting:
                calls.stand_still(some, now + number, now)
            case "go on":
                calls.go_on(now)
            case "exit":
                calls.fail_in_flight("exit", 0.0)
            case "expire":
                time_out(calls, now)
        deadline = calls.next_moment()
        assert (deadline is None) == (calls.open == 0)
        assert deadline is None or deadline in told
    time_out(calls, now + 1000)
    assert calls.open == 0
    assert all(call.reply.settled for call in made)
