"""The strip of a server's life: it has no gaps, everything is inside, and it lines up with the plots."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from actors.facts import StateChange
from actors.installation import InstallationStatus
from actors.life.states import RAN, State
from supervisor.front.ui.plots import LABELS, LIFELINE_HEIGHT, UNKNOWN, WIDTH, Lifeline, bars, lifeline
from supervisor.front.ui.words import life_of

STATES = st.sampled_from(State)
WORDS = st.sampled_from([*get_args(InstallationStatus)])
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 5000),
        st.builds(
            StateChange, launch=st.just("a"), state=STATES, previous=STATES, status=WORDS, disabled=st.booleans()
        ),
    ),
    max_size=60,
)
Change = tuple[float, StateChange]
TIMES = st.floats(-100, 6000)
BEGIN, END = 1000.0, 4600.0


def change(
    time: float, state: State, previous: State = State.DORMANT, reason: str = "", status: str = "online"
) -> Change:
    return time, StateChange(launch="a", state=state, previous=previous, status=status, reason=reason)


def life(*changes: Change, now: float = 4000) -> Lifeline:
    return lifeline(changes, BEGIN, END, now)


@given(CHANGES, TIMES)
def test_segments_are_side_by_side_from_the_begin_until_now(changes: list[Change], now: float) -> None:
    drawn = life(*changes, now=now)
    until = min(max(now, BEGIN), END)
    edges = [(each.begin, each.end) for each in drawn.parts]
    assert [begin for begin, _ in edges] + [until] == [BEGIN, *(end for _, end in edges)]
    assert all(begin < end for begin, end in edges)
    assert all(one.kind != other.kind for one, other in zip(drawn.parts, drawn.parts[1:], strict=False))
    assert abs(sum(seconds for _, seconds in drawn.sums) - (until - BEGIN)) < 1e-6


@given(CHANGES, TIMES)
def test_everything_is_inside_of_the_drawing(changes: list[Change], now: float) -> None:
    drawn = life(*changes, now=now)
    for each in drawn.parts:
        assert 0 <= each.x <= each.x + each.width <= WIDTH + 0.01
        assert 0 < each.top < LIFELINE_HEIGHT == each.top + each.height
        assert each.kind in LABELS
        assert each.words
    assert all(0 <= mark.x <= WIDTH for mark in drawn.marks)


@given(st.lists(st.tuples(st.floats(0, 5000), STATES, STATES), max_size=60).map(sorted), TIMES)
def test_each_crash_and_each_wake_of_the_window_has_its_mark(
    told: list[tuple[float, State, State]], now: float
) -> None:
    drawn = life(*(change(*each) for each in told), now=now)
    inside = [(state, previous) for time, state, previous in told if BEGIN <= time <= min(max(now, BEGIN), END)]
    down = (State.RESPAWNING, State.FAILED)
    assert drawn.crashes == sum(state in down and previous in RAN for state, previous in inside)
    assert drawn.wakes == inside.count((State.SPAWNING, State.DORMANT))
    assert [mark.time for mark in drawn.marks] == sorted(mark.time for mark in drawn.marks)


@given(CHANGES.map(lambda changes: sorted(changes, key=lambda each: each[0])), st.floats(BEGIN, 4600))
def test_at_each_moment_it_shows_the_newest_state(changes: list[Change], moment: float) -> None:
    before = [change for time, change in changes if time <= moment]
    shown = [each for each in life(*changes, now=END).parts if each.begin <= moment < each.end]
    for part in shown:
        word = life_of(before[-1].row) if before else LABELS[UNKNOWN]
        assert word in part.words


def test_a_moment_is_where_the_plot_of_calls_has_it() -> None:
    buckets: list[dict[str, Any]] = [
        {"start": BEGIN + 60 * place, "calls": 0, "failed": 0, "not_sent": 0, "took_ms": {}} for place in range(60)
    ]
    drawn = life(*(change(bucket["start"], State.READY, State.DORMANT) for bucket in buckets[30:31]), now=END)
    assert drawn.parts[1].x == bars(buckets).bars[30].x


def test_what_is_not_known_is_a_part_of_it_and_a_sentence_says_all() -> None:
    drawn = life(
        change(1600, State.SPAWNING),
        change(1601, State.HANDSHAKING, State.SPAWNING),
        change(1602, State.READY, State.DISCOVERING),
        change(3400, State.RESPAWNING, State.READY, "exit code 1", "error"),
        change(3460, State.SPAWNING, State.RESPAWNING),
        change(3465, State.READY, State.DISCOVERING),
    )
    assert [(each.kind, each.words) for each in drawn.parts] == [
        (UNKNOWN, ("not known",)),
        ("moving", ("online, spawning", "online, handshaking")),
        ("ok", ("online, ready",)),
        ("failed", ("error, respawning",)),
        ("moving", ("online, spawning",)),
        ("ok", ("online, ready",)),
    ]
    assert [(mark.what, mark.why) for mark in drawn.marks] == [("wake", ""), ("crash", "exit code 1")]
    assert drawn.sentence == "online 38 min, not known 10 min, down 1 min, on its way 7 s; 1 crash, 1 wake"


def test_of_nobody_nothing_is_known() -> None:
    drawn = life()
    assert ([each.kind for each in drawn.parts], drawn.sentence) == (
        [UNKNOWN],
        "not known 50 min; 0 crashes, 0 wakes",
    )
    assert life(now=0).parts == []
