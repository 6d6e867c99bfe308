"""Runs the hooks of one plugin: each within its deadline, and nothing that it does leaves but as `PluginFailed`.

- A failure is: it raises, it is late, it returns what the hook must not return. What becomes of whatever the hook was
  asked about is decided where it is called, by `guards`.
- After `MAX_FAILURES` in a row a hook is off for `RETRY_S`, then it is tried again: one success and it is on. The
  operator is told by an event and a condition. So a plugin that hangs costs few deadlines.
- One of a plugin that guards is off only for being late: what raises costs the call that it was raised for, and no
  other one. Who can make it fail must not be able to stop the calls of others.
- Log, event and status name kind and place of an error, never its text, which may have any argument in it.
"""

from __future__ import annotations

import inspect
import logging
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec
import trio

from actors.kit import is_want
from supervisor.plugins.answers import UnusableAnswer
from supervisor.plugins.contract import Plugin, Undecodable
from supervisor.plugins.loading import PluginPackage

log = logging.getLogger(__name__)

T = TypeVar("T")
MAX_FAILURES: Final = 5
RETRY_S: Final = 60.0
MAX_KINDS: Final = 32
"""So many different failures of a plugin are logged, each one once."""
LARGE_BYTES: Final = 65_536


class PluginFailed(Exception):
    """A hook gave no answer. The text says why, to operators."""


class Watcher(Protocol):
    """Who is told that a hook of a plugin goes off, or works again."""

    def on_off(self, name: str, hook: str, why: str, *, guards: bool) -> None:
        """It is off for now."""

    def on_again(self, name: str, hook: str) -> None:
        """It has answered again."""


class HookStatus(msgspec.Struct, kw_only=True):
    """How a hook is doing: its failures in a row, why the last one was, whether it was late, when it is tried again.

    That is a moment of the trio clock.
    """

    failures: int = 0
    why: str = ""
    late: bool = False
    again_at: float = 0.0

    @property
    def off(self) -> bool:
        return self.failures >= MAX_FAILURES


class PluginStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a plugin is doing. `off` are the hooks that failed too often, `failures` tells why others failed last."""

    name: str
    version: str
    guards: bool
    hooks: tuple[str, ...]
    off: tuple[str, ...]
    failures: dict[str, str]


class RunningPlugin:
    """One plugin of the configuration. `options` are those that it was made of."""

    def __init__(
        self,
        name: str,
        package: PluginPackage,
        plugin: Plugin[Any],
        options: Mapping[str, Any],
        watcher: Watcher,
        *,
        threads: int,
    ) -> None:
        self.name = name
        self.options = options
        self.guards = package.type.guards
        self.hooks = package.hooks
        self._version = f"{package.distribution} {package.version}"
        self._plugin = plugin
        self._watcher = watcher
        self.threads = threads
        self._places = trio.CapacityLimiter(threads)
        self._statuses = {hook: HookStatus() for hook in self.hooks}
        self._logged: set[str] = set()

    def status(self) -> PluginStatus:
        hooks = tuple(sorted(self.hooks))
        statuses = {hook: self._statuses[hook] for hook in hooks}
        return PluginStatus(
            name=self.name,
            version=self._version,
            guards=self.guards,
            hooks=hooks,
            off=tuple(hook for hook, status in statuses.items() if status.off),
            failures={hook: status.why for hook, status in statuses.items() if status.failures},
        )

    async def run(self, hook: str, within_s: float, check: Callable[[Any], T], *given: Any) -> T:
        """Return what a hook answers, as `check` reads it: that raises `UnusableAnswer`, and runs in a thread if it may
        take long. Raises `PluginFailed`. A checkpoint, unless an async hook answers at once.
        """
        answers: list[T] = await self._run(hook, within_s, lambda value, _: check(value), [given])
        return answers[0]

    async def run_each(
        self, hook: str, within_s: float, check: Callable[[Any, Any], T], items: Sequence[Any], *more: Any
    ) -> list[T | PluginFailed]:
        """Return what a hook answers to each item, and `more`, within one deadline for all. `check` is given the item,
        too. Never raises, but counts one failure if any failed.
        """
        given = [(item, *more) for item in items]
        try:
            return await self._run(hook, within_s, lambda value, each: check(value, each[0]), given, True)
        except PluginFailed as error:
            return [error] * len(items)

    async def _run(
        self,
        hook: str,
        within_s: float,
        check: Callable[[Any, tuple[Any, ...]], T],
        items: Sequence[tuple[Any, ...]],
        keep: bool = False,
    ) -> list[Any]:
        """Return an answer for each item, with `keep` the failure where there is none; else that is raised."""
        if self._is_off(status := self._statuses[hook]):
            raise PluginFailed(f"{hook} is off for now, as it {status.why}")
        over = threading.Event()
        answers: list[Any] = []
        try:
            with trio.move_on_after(within_s) as scope:
                answers = await self._answers(getattr(self._plugin, hook), check, items, over)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - no thread to be had, or what is left of a nursery
            answers = [error] * len(items)
        finally:
            over.set()
        if scope.cancelled_caught:
            self._fail(hook, f"did not answer within {within_s:g} s", late=True)
        return self._judge(hook, answers, keep)

    async def _answers(
        self,
        function: Any,
        check: Callable[[Any, tuple[Any, ...]], T],
        items: Sequence[tuple[Any, ...]],
        over: threading.Event,
    ) -> list[Any]:
        if inspect.iscoroutinefunction(function):
            return [await self._answer(function, check, item) for item in items]
        work = _InThread(function, check, items, over)
        return await trio.to_thread.run_sync(work, limiter=self._places, abandon_on_cancel=True)

    async def _answer(self, function: Any, check: Callable[[Any, tuple[Any, ...]], T], item: tuple[Any, ...]) -> Any:
        try:
            value = await function(*item)
            if isinstance(value, dict) or (isinstance(value, bytes) and len(value) > LARGE_BYTES):
                return await trio.to_thread.run_sync(check, value, item, limiter=self._places, abandon_on_cancel=True)
            return check(value, item)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code
            return error
        except (trio.Cancelled, KeyboardInterrupt, GeneratorExit, BaseExceptionGroup):
            raise  # of a nursery it may be that of a cancellation
        except BaseException as error:  # noqa: BLE001 - foreign code, as below
            return error

    def _judge(self, hook: str, answers: list[Any], keep: bool) -> list[Any]:
        failures = [answer for answer in answers if isinstance(answer, BaseException)]
        ours = [error for error in failures if not isinstance(error, Undecodable) and not is_want(error)]
        if ours:
            try:
                self._fail(hook, reason_of(ours[0]))
            except PluginFailed:
                if not keep:
                    raise
        elif not failures:
            self._reset(hook)
        if failures and not keep:
            raise PluginFailed(f"{hook} {reason_of(failures[0])}")
        return [
            PluginFailed(f"{hook} {reason_of(answer)}") if isinstance(answer, BaseException) else answer
            for answer in answers
        ]

    def _is_off(self, status: HookStatus) -> bool:
        if not status.off or (self.guards and not status.late):
            return False
        return trio.current_time() < status.again_at

    def _fail(self, hook: str, reason: str, *, late: bool = False) -> None:
        """Count a failure. Raises `PluginFailed`."""
        status = self._statuses[hook]
        status.why, status.late = reason, late
        status.failures += 1
        status.again_at = trio.current_time() + RETRY_S
        why = f"{hook} {reason}"
        if why not in self._logged and len(self._logged) < MAX_KINDS:
            self._logged.add(why)
            log.warning("plugin %s: %s", self.name, why)
        if status.failures == MAX_FAILURES:
            self._watcher.on_off(self.name, hook, reason, guards=self.guards)
        raise PluginFailed(why)

    def _reset(self, hook: str) -> None:
        was_off, self._statuses[hook] = self._statuses[hook].off, HookStatus()
        if was_off:
            self._watcher.on_again(self.name, hook)


class _InThread:
    """Asks a plain hook about some items, one after the other, until it is over."""

    def __init__(
        self,
        function: Callable[..., Any],
        check: Callable[[Any, tuple[Any, ...]], Any],
        items: Sequence[tuple[Any, ...]],
        over: threading.Event,
    ) -> None:
        self._function, self._check, self._items, self._over = function, check, items, over

    def __call__(self) -> list[Any]:
        answers: list[Any] = []
        for item in self._items:
            if self._over.is_set():
                break
            try:
                answers.append(self._check(self._function(*item), item))
            except trio.Cancelled:
                raise
            except BaseException as error:  # noqa: BLE001 - foreign code: a panic of Rust is no Exception
                answers.append(error)
        return answers


def reason_of(error: BaseException) -> str:
    """Return what went wrong in a hook, without a word of the error that may have come from outside."""
    if isinstance(error, UnusableAnswer):
        return f"returned {error}"
    if isinstance(error, Undecodable):
        return "could not decode what it was given"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"raised {type(error).__name__}{place}"
