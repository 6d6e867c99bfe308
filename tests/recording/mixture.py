"""Calls of every kind by chance from a seed: they go well, fail, time out, are refused, taken back, asked about."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import trio

from tests.recording.world import Answer

Ask = Callable[[str, str, Mapping[str, Any]], Awaitable[Answer]]
TOGETHER: Final = 24
"""Most calls at the same time."""
ASLEEP_S: Final = 45.0
"""A pause in which servers fall asleep."""
LEAVES_S: Final = 0.5
"""After that long a client does not want to know any more."""


class Kind(Protocol):
    """One way to call: at which door, with which method and params, by chance."""

    def __call__(self, chance: random.Random) -> tuple[str, str, dict[str, Any]]: ...


def executes(path: str, **arguments: Any) -> Kind:
    given = {"tool_path": path, "arguments": arguments}
    return lambda chance: ("/mcp", "tools/call", {"name": "execute_mcp_tool", "arguments": given})


def calls(door: str, name: str, **arguments: Any) -> Kind:
    return lambda chance: (door, "tools/call", {"name": name, "arguments": arguments})


def sleeps(path: str) -> Kind:
    return lambda chance: executes(path, s=round(chance.uniform(0.01, 0.6), 2))(chance)


def searches(*queries: str) -> Kind:
    return lambda chance: calls("/mcp", "discover_mcp_tools", query=chance.choice(queries), limit=3)(chance)


def asks(door: str, method: str, **params: Any) -> Kind:
    return lambda chance: (door, method, params)


KINDS: Final[Mapping[str, tuple[int, Kind]]] = {
    "well": (300, executes("desk:say_again", text="hello")),
    "well, at the door of all": (120, calls("/mcp/all", "desk__say_again", text="hello")),
    "well, at the door of one": (120, calls("/mcp/servers/shop", "buy", number=7)),
    "well, at a modern server": (60, executes("shop:list_orders")),
    "slow": (40, sleeps("desk:sleep")),
    "several": (20, calls("/mcp", "execute_mcp_tool", calls=[{"tool_path": "shop:buy"}, {"tool_path": "desk:fail"}])),
    "search": (60, searches("read a page", "buy an article", "qqqq", "desk:*")),
    "lists": (30, asks("/mcp/all", "tools/list")),
    "a resource": (20, calls("/mcp", "read_mcp_resource", uri="library|file:///a")),
    "a tool error": (50, executes("desk:fail")),
    "an error of the server": (40, executes("desk:refuse")),
    "no proper result": (10, executes("desk:odd")),
    "too late": (6, executes("desk:hang")),
    "taken back": (6, executes("desk:hang", left=True)),
    "a crash": (6, executes("desk:crash")),
    "no such tool": (20, executes("desk:nothing")),
    "no such server": (10, executes("nowhere:nothing")),
    "wrong arguments": (20, executes("desk:write_page")),
    "one of others": (20, executes("vault:tell")),
    "one switched off": (10, executes("off:tell")),
    "one that waits for values": (10, executes("till:tell")),
    "asked, and yes": (20, executes("desk:erase_page", page=3)),
    "asked, and no": (20, executes("desk:erase_page", page=4)),
    "asked, and no answer": (4, executes("desk:erase_page", page=5)),
    "no such method": (10, asks("/mcp", "x-own/nothing")),
}
YES: Final = {"confirm": {"action": "accept", "content": {"run": True}}}
NO: Final = {"confirm": {"action": "decline"}}


class Mixture:
    """`people` make calls; `ask` is by whom, by which of their connections, and what."""

    def __init__(self, chance: random.Random, people: list[str], ask: Ask) -> None:
        self._chance, self._people, self._ask = chance, people, ask
        self._came: Counter[str] = Counter()

    async def play(self, count: int) -> list[str]:
        """Make so many calls; return how many of each kind ended in which way."""
        made = 0
        while made < count:
            together = min(self._chance.randint(1, TOGETHER), count - made)
            made += together
            async with trio.open_nursery() as nursery:
                for number in range(together):
                    nursery.start_soon(self._one, f"{self._chance.choice(self._people)} {number}", self._kind())
            if self._chance.random() < 0.02:
                await trio.sleep(ASLEEP_S)
        return [f"{times} {how}" for how, times in sorted(self._came.items(), key=lambda each: each[0])]

    def _kind(self) -> tuple[str, tuple[str, str, dict[str, Any]]]:
        (name,) = self._chance.choices([*KINDS], [weight for weight, _ in KINDS.values()])
        return name, KINDS[name][1](self._chance)

    async def _one(self, who: str, kind: tuple[str, tuple[str, str, dict[str, Any]]]) -> None:
        name, (door, method, params) = kind
        came = "left"
        with trio.move_on_after(LEAVES_S if name == "taken back" else 1e6):
            answer = await self._ask(who, door, body_of(method, params))
            came = outcome(answer)
            if came.endswith("input_required") and "no answer" not in name:
                asked = json.loads(answer.body)["result"]["structuredContent"]
                more = {"continuation": asked["continuation"], "answers": YES if "yes" in name else NO}
                params = {**params, "arguments": {**params["arguments"], **more}}
                came += f", then {outcome(await self._ask(who, door, body_of(method, params)))}"
        self._came[f"{name}, {who.split()[0]}: {came}"] += 1


def body_of(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def outcome(answer: Answer) -> str:
    """Return how a request ended: by which error, and whether anything was done."""
    told = json.loads(answer.body)
    result = told.get("result", {})
    content = result.get("structuredContent", {})
    error = told.get("error") or (content.get("error") if isinstance(content, dict) else None)
    if error:
        data = error.get("data") or error
        return f"{answer.status} {error['code']} {data.get('type')} {data.get('outcome')}"
    if result.get("isError"):
        return f"{answer.status} isError"
    return f"{answer.status} {content.get('status', 'result') if isinstance(content, dict) else 'result'}"
