"""The lifecycle: every event in every state, in any order; and its diagram."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from actors.life import lifecycle
from actors.life.lifecycle import step
from actors.life.states import ALIVE, ON_ENTRY, RESTING, TIMERS, Life, State, Timer, Wanted
from docs import generate

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "lifecycle.md"

# What each event does in each state: the state that follows, `.` for "nothing at all", `=` for "something, but the
# state stays". For a life that is wanted up, without a reason, at incarnation 1.
COLUMNS = tuple(State)
TABLE = {
    #                          dormant  spawning    handshaking discovering ready      draining respawning failed   stop
    "Wake":                   "spawning .           .           .           .          .        .          spawning .",
    "Sleep":                  ".        draining    draining    draining    draining   =        dormant    .        .",
    "Restart":                "spawning draining    draining    draining    draining   .        spawning   spawning .",
    "Stop":                   "stopped  draining    draining    draining    draining   =        stopped    stopped  .",
    "Spawned":                ".        handshaking .           .           .          .        .          .        .",
    "SpawnRefused":           ".        respawning  .           .           .          spawning .          .        .",
    "SpawnRefused permanent": ".        failed      .           .           .          failed   .          .        .",
    "SpawnRefused scarce":    ".        respawning  .           .           .          respawning .        .        .",
    "Agreed":                 ".        .           discovering .           .          .        .          .        .",
    "Agreed known":           ".        .           ready       .           .          .        .          .        .",
    "NotAgreed":              ".        .           draining    .           .          .        .          .        .",
    "Barred":                 ".        .           draining    draining    draining   .          .        .        .",
    "Fallback":               ".        .           draining    .           .          .        .          .        .",
    "Discovered":             ".        .           .           ready       .          .        .          .        .",
    "Violated":               ".        draining    draining    draining    draining   =        .          .        .",
    "Away":                   ".        draining    draining    draining    draining   .        .          .        .",
    "Expired":                ".        draining    draining    draining    .          =        .          .        .",
    "Drained":                ".        .           .           .           .          =        .          .        .",
    "Exited":                 ".        respawning  respawning  respawning  respawning spawning .          .        .",
    "Exited normal":          ".        respawning  respawning  respawning  dormant    spawning .          .        .",
    "Exited renewable":       ".        respawning  respawning  respawning  spawning   spawning .          .        .",
    "Prolonged handshake":    ".        .           =           .           .          .        .          .        .",
    "Prolonged idle":         ".        .           .           .           =          .        .          .        .",
    "Admitted":               ".        .           .           .           .          .        =          .        .",
    "BackoffOver":            ".        .           .           .           .          .        spawning   .        .",
    "GaveUp":                 ".        .           .           .           .          .        failed     .        .",
}  # fmt: skip


def name(event: lifecycle.Event) -> str:
    flags = [flag for flag in ("permanent", "scarce", "known", "normal", "renewable") if getattr(event, flag, False)]
    timers = [event.timer] if isinstance(event, lifecycle.Prolonged) else []
    return " ".join([type(event).__name__, *flags, *timers])


EVENTS = {name(event): event for event in generate.events(1)}


def life_in(state: State) -> Life:
    wanted: Wanted = "dormant" if state is State.DORMANT else "stopped" if state is State.STOPPED else "up"
    return Life(state, wanted, 1)


def test_every_kind_of_event_has_a_row() -> None:
    def leaves(kind: type[lifecycle.Event]) -> set[str]:
        below = kind.__subclasses__()
        return {kind.__name__} if not below else set().union(*(leaves(one) for one in below))

    assert {row.split()[0] for row in TABLE} == leaves(lifecycle.Event)
    assert set(TABLE) == set(EVENTS)


@pytest.mark.parametrize("row", TABLE)
def test_every_event_in_every_state_does_what_was_decided(row: str) -> None:
    for state, expected in zip(COLUMNS, TABLE[row].split(), strict=True):
        before = life_in(state)
        after, effects = step(before, EVENTS[row])
        if expected == ".":
            assert (after, effects) == (before, ()), f"{row} in {state}"
        elif expected == "=":
            assert after.state is state, f"{row} in {state}"
            assert (after, effects) != (before, ()), f"{row} in {state}"
        else:
            assert after.state.value == expected, f"{row} in {state}"


def test_every_event_of_an_older_process_changes_nothing() -> None:
    for state in State:
        before = replace(life_in(state), incarnation=2)
        for event in generate.events(1):
            if isinstance(event, lifecycle.OfProcess):
                assert step(before, event) == (before, ())


class Lives(RuleBasedStateMachine):
    """Whatever happens in whatever order, these hold."""

    def __init__(self) -> None:
        super().__init__()
        self.life = Life()
        self.processes: set[int] = set()
        self.stopped = False
        self.killed: set[int] = set()
        self.served: set[int] = set()
        self.agreed: set[int] = set()
        self.timers: set[Timer] = set()

    def do(self, event: lifecycle.Event) -> None:
        before = self.life
        stale = isinstance(event, lifecycle.OfProcess) and event.incarnation != before.incarnation
        self.stopped |= isinstance(event, lifecycle.Stop)
        # What ends a process in the world ends it here, provided the event is about a process that there is.
        if isinstance(event, lifecycle.Exited | lifecycle.SpawnRefused):
            if event.incarnation not in self.processes:
                return
            if isinstance(event, lifecycle.SpawnRefused) and before.state not in (State.SPAWNING, State.DRAINING):
                return  # a process that was reported to run cannot be refused any more
            self.processes.discard(event.incarnation)
        if isinstance(event, lifecycle.Agreed) and before.state is State.HANDSHAKING and not stale:
            self.agreed.add(event.incarnation)
        self.life, effects = step(before, event)
        if stale:
            assert (self.life, effects) == (before, ())
        if self.stopped:
            assert self.life.wanted == "stopped"
        reports = [effect.previous for effect in effects if isinstance(effect, lifecycle.Report)]
        assert reports == ([before.state] if self.life.state is not before.state else [])
        for effect in effects:
            self.perform(effect, before)

    def perform(self, effect: lifecycle.Effect, before: Life) -> None:
        match effect:
            case lifecycle.StartTimer(timer=timer):
                assert timer in TIMERS[self.life.state]
                self.timers.add(timer)
            case lifecycle.CancelTimer(timer=timer):
                self.timers.discard(timer)
            case lifecycle.GiveUp():
                assert self.life.state is State.FAILED
            case lifecycle.Spawn(incarnation=number):
                assert not self.stopped
                assert number == before.incarnation + 1
                self.processes.add(number)
            case lifecycle.Kill():
                assert self.life.incarnation in self.processes
                self.killed.add(self.life.incarnation)
            case lifecycle.AskPolicy(scarce=scarce):
                assert self.life.state is State.RESPAWNING
                assert not scarce or before.state in (State.SPAWNING, State.DRAINING)
            case lifecycle.Serve():
                assert self.life.state is State.READY
                self.served.add(self.life.incarnation)
            case lifecycle.ListAll():
                assert self.life.state in (State.DISCOVERING, State.READY)
            case lifecycle.FailWaiting():
                assert self.life.state in RESTING

    @rule(number=st.integers(0, len(EVENTS) - 1), age=st.sampled_from([0, 0, 0, 0, 1, -1]))
    def anything_at_any_time(self, number: int, age: int) -> None:
        self.do(generate.events(self.life.incarnation - age)[number])

    @rule(known=st.booleans())
    def progress(self, known: bool) -> None:
        for event in (lifecycle.Wake(), lifecycle.BackoffOver()):
            self.do(event)
        number = self.life.incarnation
        for fact in (lifecycle.Spawned(number), lifecycle.Agreed(number, known), lifecycle.Discovered(number)):
            self.do(fact)

    def teardown(self) -> None:
        """From anywhere, Stop and the death of the process end in STOPPED."""
        self.do(lifecycle.Stop())
        for number in list(self.processes):
            self.do(lifecycle.Drained(number))
            self.do(lifecycle.Exited(number, "killed"))
        assert self.life.state is State.STOPPED
        assert not self.processes

    @invariant()
    def there_is_at_most_one_process(self) -> None:
        assert len(self.processes) <= 1

    @invariant()
    def a_resting_server_has_no_process(self) -> None:
        if self.life.state in RESTING | {State.RESPAWNING}:
            assert not self.processes

    @invariant()
    def an_alive_server_has_the_process_of_its_incarnation(self) -> None:
        if self.life.state in ALIVE:
            assert self.processes == {self.life.incarnation}

    @invariant()
    def timers_end_with_the_state_they_belong_to(self) -> None:
        assert self.timers <= TIMERS.get(self.life.state, frozenset())
        if self.life.state in ON_ENTRY:
            assert ON_ENTRY[self.life.state] in self.timers

    @invariant()
    def a_ready_server_has_agreed_and_serves(self) -> None:
        assert self.served <= self.agreed
        if self.life.state is State.READY:
            assert self.life.incarnation in self.served
            assert not self.life.reason
            assert not self.life.ending  # so nobody has to ask that of a server that serves

    @invariant()
    def what_drains_with_a_reason_was_killed(self) -> None:
        if self.life.barred:  # its calls in flight may end: those were taken
            return
        if self.life.state is State.DRAINING and (self.life.reason or self.life.fallback):
            assert self.life.incarnation in self.killed


TestLives = Lives.TestCase
TestLives.settings = settings(stateful_step_count=30)


def run(life: Life, *events: lifecycle.Event) -> Life:
    for event in events:
        life, _ = step(life, event)
    return life


def test_a_fallback_is_no_failure() -> None:
    life = run(Life(), lifecycle.Wake(), lifecycle.Spawned(1), lifecycle.Fallback(1), lifecycle.Exited(1, "killed"))
    assert (life.state, life.incarnation, life.fallback) == (State.SPAWNING, 2, False)


def test_a_rejection_is_permanent_and_an_operators_wake_forgets_it() -> None:
    life = run(
        Life(),
        lifecycle.Wake(),
        lifecycle.Spawned(1),
        lifecycle.NotAgreed(1, "no version"),
        lifecycle.Exited(1, "stopped"),
    )
    assert (life.state, life.permanent, life.reason) == (State.FAILED, True, "no version")
    assert run(life, lifecycle.Wake()) == Life(State.SPAWNING, "up", 2)


@pytest.mark.parametrize("end", [lifecycle.NotAgreed(1, "no version"), lifecycle.Barred(1, "it wants a login")])
def test_a_restart_ordered_while_a_server_that_did_not_agree_is_being_stopped_is_not_lost(end: lifecycle.Event) -> None:
    stopping = run(Life(), lifecycle.Wake(), lifecycle.Spawned(1), end)
    assert (stopping.state, stopping.permanent) == (State.DRAINING, True)
    life = run(stopping, lifecycle.Restart())
    assert life == Life(State.DRAINING, "up", 1)
    assert run(life, lifecycle.Exited(1, "stopped")) == Life(State.SPAWNING, "up", 2)


def test_a_stop_is_not_taken_back_by_an_order_that_comes_while_the_server_ends() -> None:
    stopping = run(Life(), lifecycle.Wake(), lifecycle.Spawned(1), lifecycle.Stop())
    for order in (lifecycle.Wake(), lifecycle.Sleep(), lifecycle.Restart()):
        assert run(stopping, order) == stopping == Life(State.DRAINING, "stopped", 1)
    assert run(stopping, lifecycle.Exited(1, "stopped")).state is State.STOPPED


def test_a_wake_serves_calls_before_the_lists_are_read_if_they_are_known() -> None:
    life = run(Life(), lifecycle.Wake(), lifecycle.Spawned(1))
    after, effects = step(life, lifecycle.Agreed(1, known=True))
    assert (after.state, effects) == (
        State.READY,
        (
            lifecycle.CancelTimer(Timer.HANDSHAKE),
            lifecycle.StartTimer(Timer.IDLE),
            lifecycle.Report(State.HANDSHAKING),
            lifecycle.Serve(),
            lifecycle.ListAll(),
        ),
    )
    assert step(after, lifecycle.Discovered(1)) == (after, ())
    assert step(after, lifecycle.Expired(1)) == (after, ())


def test_want_of_resources_backs_off_and_is_told_apart_from_a_failure() -> None:
    starting = run(Life(), lifecycle.Wake())
    for scarce in (True, False):
        after, effects = step(starting, lifecycle.SpawnRefused(1, "no descriptors", scarce=scarce))
        assert (after.state, after.reason) == (State.RESPAWNING, "no descriptors")
        assert effects[-1] == lifecycle.AskPolicy("no descriptors", scarce)
    woken_again = run(starting, lifecycle.Sleep(), lifecycle.Wake())
    after, effects = step(woken_again, lifecycle.SpawnRefused(1, "no descriptors", scarce=True))
    assert after.state is State.RESPAWNING  # at once would be a loop


def test_a_server_that_cannot_be_reached_is_left_alone_for_as_long_as_it_asks() -> None:
    ready = run(Life(), lifecycle.Wake(), lifecycle.Spawned(1), lifecycle.Agreed(1), lifecycle.Discovered(1))
    after, effects = step(run(ready, lifecycle.Away(1, "down", 7.0)), lifecycle.Exited(1, "connection closed"))
    assert (after.state, after.reason, after.away_s) == (State.RESPAWNING, "down", 7.0)
    assert effects[-1] == lifecycle.AskPolicy("down", False, 7.0)
    assert run(after, lifecycle.BackoffOver()).away_s is None
    _, effects = step(run(Life(), lifecycle.Wake()), lifecycle.SpawnRefused(1, "down", away=True))
    assert effects[-1] == lifecycle.AskPolicy("down", False, 0.0)


def test_a_server_woken_while_it_goes_to_sleep_is_started_again_without_a_restart() -> None:
    ready = run(Life(), lifecycle.Wake(), lifecycle.Spawned(1), lifecycle.Agreed(1), lifecycle.Discovered(1))
    life = run(ready, lifecycle.Sleep(), lifecycle.Wake(), lifecycle.Drained(1))
    after, effects = step(life, lifecycle.Exited(1, "exit code 0"))
    assert after.state is State.SPAWNING
    assert lifecycle.Spawn(2) in effects
    assert not any(isinstance(effect, lifecycle.AskPolicy) for effect in effects)


def test_a_violation_is_a_failure_even_while_draining_from_ready() -> None:
    ready = run(Life(), lifecycle.Wake(), lifecycle.Spawned(1), lifecycle.Agreed(1), lifecycle.Discovered(1))
    life = run(ready, lifecycle.Violated(1, "deaf"), lifecycle.Exited(1, "killed"))
    assert (life.state, life.reason) == (State.RESPAWNING, "deaf")


def test_a_timer_that_fits_the_new_state_too_runs_on() -> None:
    discovering = run(Life(), lifecycle.Wake(), lifecycle.Spawned(1), lifecycle.Agreed(1))
    _, effects = step(discovering, lifecycle.Discovered(1))
    assert lifecycle.CancelTimer(Timer.LISTING) not in effects
    _, effects = step(discovering, lifecycle.Sleep())
    assert effects == (
        lifecycle.CancelTimer(Timer.LISTING),
        lifecycle.StartTimer(Timer.DRAIN),
        lifecycle.Report(State.DISCOVERING),
        lifecycle.Kill(),
    )


def test_the_next_process_waits_for_as_long_as_the_restart_log_says() -> None:
    failed = run(Life(), lifecycle.Wake(), lifecycle.SpawnRefused(1, "reason"))
    assert step(failed, lifecycle.Admitted(4.0)) == (failed, (lifecycle.StartTimer(Timer.BACKOFF, 4.0),))
    after, effects = step(failed, lifecycle.GaveUp())
    assert effects[:4] == (
        lifecycle.CancelTimer(Timer.BACKOFF),
        lifecycle.GiveUp(),
        lifecycle.StartTimer(Timer.RETRY),
        lifecycle.Report(State.RESPAWNING),
    )
    assert step(after, lifecycle.Admitted(4.0)) == (after, ())


def test_the_document_has_the_diagram_that_the_code_draws() -> None:
    assert f"```mermaid\n{generate.mermaid()}\n```" in DOCUMENT.read_text()


def test_the_document_explains_every_state_and_event() -> None:
    text = DOCUMENT.read_text()
    for state in State:
        assert text.count(f"\n- **`{state.value}`**, ") == 1
    for row in TABLE:
        assert text.count(f"\n- **`{row.split()[0]}`**: ") == 1


def test_the_diagram_has_every_state() -> None:
    drawn = {state for before, _, after in generate.arrows() for state in (before, after)}
    assert drawn == {state.value for state in State}
