"""One plugin: whatever its hooks do, an answer or `PluginFailed` comes of it, in time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from supervisor.plugins.answers import UnusableAnswer
from supervisor.plugins.contract import Plugin, PluginOptions, Undecodable
from supervisor.plugins.loading import PluginPackage
from supervisor.plugins.running import MAX_FAILURES, RETRY_S, PluginFailed, RunningPlugin

HOOK = "before_call"
SECRET = "hunter2"


class PanicError(BaseException):
    """As an extension in Rust raises it."""


class Told:
    """Who is told of a plugin."""

    def __init__(self) -> None:
        self.events: list[tuple[str, ...]] = []

    def on_off(self, name: str, hook: str, why: str, *, guards: bool) -> None:
        self.events.append(("off", name, hook, why, str(guards)))

    def on_again(self, name: str, hook: str) -> None:
        self.events.append(("again", name, hook))


def plugin_of(hook: Callable[..., Any], told: Told | None = None, *, guards: bool = False) -> RunningPlugin:
    kind = type("Made", (Plugin,), {HOOK: hook, "guards": guards})
    made: Plugin[Any] = kind(PluginOptions())
    return RunningPlugin("p", PluginPackage(kind, "dist", "1"), made, {}, told or Told(), threads=2)


def as_it_is(value: Any) -> Any:
    if value == "nonsense":
        raise UnusableAnswer("nonsense")
    return value


async def ask(plugin: RunningPlugin, given: Any = 1, within_s: float = 60) -> Any:
    return await plugin.run(HOOK, within_s, as_it_is, given)


def raises(kind: type[BaseException]) -> Callable[..., Any]:
    def hook(self: Any, given: Any) -> Any:
        del self, given
        raise kind(SECRET)

    return hook


def raises_async(kind: type[BaseException]) -> Callable[..., Any]:
    async def hook(self: Any, given: Any) -> Any:
        del self, given
        raise kind(SECRET)

    return hook


async def test_a_plain_hook_answers_from_a_thread_and_an_async_one_from_the_loop() -> None:
    def plain(self: Any, given: int) -> tuple[int, int]:
        return given + 1, threading.get_ident()

    async def on_the_loop(self: Any, given: int) -> tuple[int, int]:
        await trio.lowlevel.checkpoint()
        return given + 2, threading.get_ident()

    answer, thread = await ask(plugin_of(plain))
    assert (answer, thread != threading.get_ident()) == (2, True)
    assert await ask(plugin_of(on_the_loop)) == (3, threading.get_ident())


@pytest.mark.parametrize("made", [raises, raises_async])
@pytest.mark.parametrize("kind", [KeyError, SystemExit, RecursionError, trio.TooSlowError, PanicError])
async def test_what_a_hook_raises_is_a_failure_without_a_word_of_it(
    kind: type[BaseException], made: Callable[[type[BaseException]], Callable[..., Any]]
) -> None:
    plugin = plugin_of(made(kind))
    with pytest.raises(PluginFailed) as caught:
        await ask(plugin)
    assert f"raised {kind.__name__} at test_running.py:" in str(caught.value)
    assert SECRET not in str(caught.value) + str(plugin.status())


async def test_what_is_left_of_a_nursery_of_a_hook_is_a_failure() -> None:
    async def fails() -> None:
        raise ValueError(SECRET)

    async def hook(self: Any, given: Any) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails)
            await trio.sleep_forever()

    with pytest.raises(PluginFailed, match="ExceptionGroup"):
        await ask(plugin_of(hook))


async def test_an_answer_of_no_use_is_a_failure_in_both_kinds_of_hooks() -> None:
    async def on_the_loop(self: Any, given: Any) -> Any:
        return "nonsense"

    for hook in (lambda self, given: "nonsense", on_the_loop):
        with pytest.raises(PluginFailed, match="returned nonsense"):
            await ask(plugin_of(hook))


async def test_a_large_answer_of_an_async_hook_is_read_in_a_thread() -> None:
    threads: list[int] = []

    async def hook(self: Any, given: int) -> bytes:
        return b"x" * given

    def check(value: bytes) -> int:
        threads.append(threading.get_ident())
        return len(value)

    plugin = plugin_of(hook)
    assert [await plugin.run(HOOK, 60, check, size) for size in (10, 100_000)] == [10, 100_000]
    assert [thread == threading.get_ident() for thread in threads] == [True, False]


async def test_an_async_hook_that_is_late_is_cancelled(autojump_clock: MockClock) -> None:
    async def hook(self: Any, given: Any) -> None:
        await trio.sleep_forever()

    started = trio.current_time()
    with pytest.raises(PluginFailed, match="did not answer within 2 s"):
        await ask(plugin_of(hook), within_s=2)
    assert trio.current_time() - started == pytest.approx(2, abs=0.1)


async def test_a_thread_that_is_late_is_left_behind_and_keeps_its_place(autojump_clock: MockClock) -> None:
    over = threading.Event()

    def hook(self: Any, given: Any) -> None:
        over.wait()

    plugin = plugin_of(hook)
    try:
        for _ in range(3):  # the third finds no thread: all two are taken
            with pytest.raises(PluginFailed, match="did not answer within 2 s"):
                await ask(plugin, within_s=2)
    finally:
        over.set()


@pytest.mark.parametrize("guards", [False, True])
async def test_one_that_is_late_too_often_is_off_for_a_while(autojump_clock: MockClock, guards: bool) -> None:
    told, asked = Told(), 0

    async def hook(self: Any, given: bool) -> str:
        nonlocal asked
        asked += 1
        return "done" if given else await trio.sleep_forever()

    plugin = plugin_of(hook, told, guards=guards)
    for _ in range(MAX_FAILURES):
        assert told.events == []
        with pytest.raises(PluginFailed, match="did not answer"):
            await ask(plugin, given=False, within_s=1)
    assert told.events == [("off", "p", HOOK, "did not answer within 1 s", str(guards))]
    started = trio.current_time()
    with pytest.raises(PluginFailed, match="before_call is off for now, as it did not"):
        await ask(plugin, given=True)
    assert (trio.current_time(), asked, plugin.status().off) == (started, MAX_FAILURES, (HOOK,))
    await trio.sleep(RETRY_S)
    assert await ask(plugin, given=True) == "done"
    assert told.events[1:] == [("again", "p", HOOK)]
    assert (plugin.status().off, plugin.status().failures) == ((), {})


async def test_a_success_in_between_begins_the_count_again() -> None:
    told = Told()

    async def hook(self: Any, given: bool) -> bool:
        if not given:
            raise ValueError
        return given

    plugin = plugin_of(hook, told)
    for _ in range(3):
        for _ in range(MAX_FAILURES - 1):
            with pytest.raises(PluginFailed):
                await ask(plugin, given=False)
        assert await ask(plugin, given=True)
    assert told.events == []


async def test_a_guard_that_raises_goes_on_being_asked_so_that_nobody_can_shut_out_others() -> None:
    told = Told()

    async def hook(self: Any, given: bool) -> bool:
        if not given:
            raise ValueError
        return given

    plugin = plugin_of(hook, told, guards=True)
    for _ in range(MAX_FAILURES + 3):
        with pytest.raises(PluginFailed, match="raised ValueError"):
            await ask(plugin, given=False)
    assert [event[0] for event in told.events] == ["off"]
    assert await ask(plugin, given=True)
    assert [event[0] for event in told.events] == ["off", "again"]


async def test_what_a_client_wrote_that_cannot_be_decoded_is_no_failure_of_the_plugin() -> None:
    told = Told()

    async def hook(self: Any, given: Any) -> None:
        raise Undecodable

    plugin = plugin_of(hook, told)
    for _ in range(MAX_FAILURES + 1):
        with pytest.raises(PluginFailed, match="could not decode what it was given"):
            await ask(plugin)
    assert (told.events, plugin.status().failures) == ([], {})


async def test_want_of_threads_is_no_failure_of_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_thread(*given: Any, **more: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("can't start new thread")

    plugin = plugin_of(lambda self, given: given)
    monkeypatch.setattr(trio.to_thread, "run_sync", no_thread)
    with pytest.raises(PluginFailed):
        await ask(plugin)
    assert plugin.status().failures == {}


async def test_a_call_that_is_cancelled_is_no_failure() -> None:
    waits = trio.Event()

    async def hook(self: Any, given: Any) -> None:
        waits.set()
        await trio.sleep_forever()

    plugin = plugin_of(hook)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, plugin)
        await waits.wait()
        nursery.cancel_scope.cancel()
    assert plugin.status().failures == {}


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_each_of_several_is_answered_alone_and_all_failures_count_once(asynchronous: bool) -> None:
    def plain(self: Any, given: int) -> int:
        return 12 // given

    async def on_the_loop(self: Any, given: int) -> int:
        return 12 // given

    plugin = plugin_of(on_the_loop if asynchronous else plain)
    answers = await plugin.run_each(HOOK, 60, lambda value, given: value * given, [1, 0, 3, 0])
    assert (answers[0], answers[2], [*plugin.status().failures]) == (12, 12, [HOOK])
    assert ["raised ZeroDivisionError" in str(answers[at]) for at in (1, 3)] == [True, True]
    assert await plugin.run_each(HOOK, 60, lambda value, given: value, [1]) == [12]
    assert plugin.status().failures == {}


async def test_where_all_of_them_are_late_together_each_one_failed(autojump_clock: MockClock) -> None:
    async def hook(self: Any, given: float) -> None:
        await trio.sleep(given)

    answers = await plugin_of(hook).run_each(HOOK, 3, lambda value, given: value, [1.0, 1.0, 1.0, 1.0])
    assert {str(answer) for answer in answers} == {"before_call did not answer within 3 s"}
