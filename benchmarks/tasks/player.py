"""Plays a task as a model does: finds its tools, calls them, reads. One thing a turn, or as much as the tools take.

- One by one: one need a discover, one call an execute, whole results.
- Joined: all needs that are known at the start in one discover, all calls that wait for nothing in one execute, and of
  each result only what the task goes on with.

Which row is the right one it is told, and the arguments are those of the task: how well a model chooses is not
measured. A tool that is not shown is asked for by its path; so is one whose row names not every required argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from benchmarks.client import Tool
from benchmarks.model import Said, rows_of, said
from benchmarks.tasks.script import Call, Task
from supervisor.metatools.definitions import DISCOVER, EXECUTE

LIMIT = 10


class Cost(msgspec.Struct, kw_only=True):
    """Turns of a model, and tokens that it reads; `again`: discovers for tools that the first one did not show."""

    turns: int = 0
    again: int = 0
    discovery: int = 0
    results: int = 0
    failed: list[str] = []

    def add(self, other: Cost) -> None:
        self.turns += other.turns
        self.again += other.again
        self.discovery += other.discovery
        self.results += other.results
        self.failed += other.failed


class Player:
    """Plays tasks. `send` calls a tool of the gateway, `count` counts tokens, `joined` is the manner."""

    def __init__(self, send: Callable[[Tool], Any], count: Callable[[str], int], *, joined: bool) -> None:
        self._send = send
        self._count = count
        self._joined = joined

    def play(self, task: Task) -> Cost:
        """Return what a task costs. A call that fails is named in it."""
        cost, known, done = Cost(), set[str](), set[int]()
        while len(done) < len(task.calls):
            ready = [place for place, call in enumerate(task.calls) if place not in done and call.after <= done]
            wave = ready if self._joined else ready[:1]
            start = [call for call in task.calls if not call.later] if self._joined and not done else []
            self._find(cost, [*start, *(task.calls[place] for place in wave)], known)
            self._call(cost, [task.calls[place] for place in wave])
            done |= set(wave)
        return cost

    def _find(self, cost: Cost, calls: Sequence[Call], known: set[str]) -> None:
        wanted = {call.tool: call.query for call in calls if call.tool not in known}
        if not wanted:
            return
        known.update(wanted)
        query, *others = dict.fromkeys(wanted.values())
        given: dict[str, Any] = {"query": query, "limit": LIMIT}
        shown = self._discover(cost, {**given, "queries": others} if others else given)
        missing = [tool for tool in wanted if not shown.get(tool)]
        if missing:
            cost.again += 1
            first, *rest = missing
            shown = self._discover(cost, {"query": first, "queries": rest} if rest else {"query": first})
            cost.failed += [f"{tool} is not found" for tool in missing if not shown.get(tool)]

    def _discover(self, cost: Cost, arguments: dict[str, Any]) -> dict[str, bool]:
        """Return of each tool that is shown whether it is shown well enough to be called."""
        text = self._ask(cost, DISCOVER, arguments).text
        cost.discovery += self._count(text)
        return {row["tool_path"]: callable_by(row) for row in rows_of(text)}

    def _call(self, cost: Cost, calls: Sequence[Call]) -> None:
        first, *others = (self._arguments(call) for call in calls)
        answer = self._ask(cost, EXECUTE, {**first, "calls": others} if others else first)
        cost.results += self._count(answer.text)
        if answer.failed:
            cost.failed.append(f"{', '.join(call.tool for call in calls)}: {answer.text[:300]}")

    def _arguments(self, call: Call) -> dict[str, Any]:
        given: dict[str, Any] = {"tool_path": call.tool, "arguments": call.arguments}
        return {**given, "pick": list(call.wants)} if self._joined and call.wants else given

    def _ask(self, cost: Cost, name: str, arguments: dict[str, Any]) -> Said:
        cost.turns += 1
        return said(self._send((name, arguments)))


def callable_by(row: dict[str, Any]) -> bool:
    """Return whether a row names every argument that the tool requires, by its schema or its signature."""
    if "inputSchema" in row:
        return True
    return "..." not in str(row.get("signature", "")).partition("(")[2].split("?")[0] and "signature" in row
