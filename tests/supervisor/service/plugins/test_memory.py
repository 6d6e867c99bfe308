"""What is kept of a call that is made again: once, for one, within its bounds and its time."""

from __future__ import annotations

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from actors.principal import LOCAL, Principal
from supervisor.plugins.questions import GivenAnswer
from supervisor.service.plugins import MAX_BYTES, MAX_CALLS, CallMemory, KnownCall

OTHER = Principal("user:ben")


def known(text: bytes = b"{}") -> KnownCall:
    return KnownCall(answers={"p": {"k": GivenAnswer("accept", text)}})


async def test_it_is_taken_once_by_the_same_principal_request_and_state(autojump_clock: MockClock) -> None:
    memory, one = CallMemory(), known()
    memory.keep(LOCAL, b"digest", "state", one, 10.0)
    for principal, digest, state in ((OTHER, b"digest", "state"), (LOCAL, b"other", "state"), (LOCAL, b"digest", "x")):
        assert memory.take(principal, digest, state) is None
    assert memory.take(LOCAL, b"digest", "state") is one
    assert memory.take(LOCAL, b"digest", "state") is None


async def test_it_is_gone_when_its_time_is_over(autojump_clock: MockClock) -> None:
    memory = CallMemory()
    memory.keep(LOCAL, b"digest", "state", known(), 10.0)
    await trio.sleep(10)
    assert memory.take(LOCAL, b"digest", "state") is None
    assert len(memory) == 0


async def test_calls_and_bytes_are_bounded_and_one_principal_leaves_room_for_another(autojump_clock: MockClock) -> None:
    memory, large = CallMemory(), known(b"x" * (MAX_BYTES // 8))
    for number in range(20):
        memory.keep(LOCAL, b"digest", str(number), large, 10.0)
    assert 0 < len(memory) <= 4
    assert memory.has_room(OTHER, large)
    small = CallMemory()
    for number in range(MAX_CALLS + 10):
        small.keep(LOCAL, b"digest", str(number), known(), 10.0)
    assert len(small) == MAX_CALLS // 2
    assert small.has_room(OTHER, known())


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 100)), max_size=30))
def test_the_same_state_again_takes_the_place_of_the_one_before(steps: list[tuple[int, bool, int]]) -> None:
    async def scenario() -> None:
        memory, expected = CallMemory(), dict[int, KnownCall]()
        for state, takes, size in steps:
            if takes:
                assert memory.take(LOCAL, b"", str(state)) is expected.pop(state, None)
            else:
                expected[state] = known(b"x" * size)
                memory.keep(LOCAL, b"", str(state), expected[state], 10.0)
        assert len(memory) == len(expected)

    trio.run(scenario, clock=MockClock(autojump_threshold=0))
