"""What both Python clients try at a server of the matrix: everything that it may tell and ask, one after the other.

It runs in both environments. A feature that fails is reported as what the client was told instead. Addresses of one
server, `NAME-WAY`, are visited one after the other, as what a resource says changes; the servers beside each other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import groupby
from typing import Any, Protocol
from uuid import uuid4

import anyio
from mcp.types import PromptReference

MEMO = "memo://one"
ROOT = "file:///home/ada"
SAMPLE = "Paris"
CHOSEN = {"country": "France"}
NAME = "Ada"
FEATURE_S = 15.0
LEVEL = "error"

Next = Callable[[], Awaitable[str]]
Told = Callable[[float], None]


class Heard:
    """What a client heard beside its answers."""

    def __init__(self) -> None:
        self.levels: list[str] = []
        self.opened: list[str] = []

    def answer(self, params: Any) -> dict[str, Any]:
        """Return the answer to an elicitation, of either mode."""
        if getattr(params, "mode", "form") == "url":
            self.opened.append(str(params.url))
            return {"action": "accept"}
        return {"action": "accept", "content": {"name": NAME}}


def sampled(params: Any) -> dict[str, Any]:
    """Return the answer to a sample: a text, or the use of the tool that it has. The id says which choice was seen."""
    answer = {"role": "assistant", "model": "none"}
    if not params.tools:
        return answer | {"content": {"type": "text", "text": SAMPLE}}
    choice = params.model_dump(by_alias=True)["toolChoice"]["mode"]
    use = {"type": "tool_use", "id": choice, "name": params.tools[0].name, "input": CHOSEN}
    return answer | {"content": [use], "stopReason": "toolUse"}


class Session(Protocol):
    """One connected client, of either SDK."""

    heard: Heard
    sdk: Any

    @property
    def version(self) -> str:
        """The revision that was agreed on."""

    async def call(self, tool: str, arguments: dict[str, Any], told: Told | None = None) -> str:
        """Call a tool; the first text of its result. Raises RuntimeError if the result is an error."""

    async def call_from_level(self, tool: str) -> None:
        """Call a tool after a wish for log messages from `LEVEL` on."""

    async def abandon(self, tool: str, arguments: dict[str, Any]) -> None:
        """Call a tool, and take the call back once it tells of progress."""

    def subscribed(self, uri: str) -> AbstractAsyncContextManager[Next]:
        """Be subscribed for the block; gives what waits for the next update, and returns whose it is."""


Connect = Callable[[str, Heard], AbstractAsyncContextManager[Session]]


async def _progress(session: Session) -> list[float]:
    steps: list[float] = []
    await session.call("work", {}, steps.append)
    return steps


async def _logs(session: Session) -> list[list[str]]:
    """Return the levels heard of without a wish, and with one."""
    heard = session.heard.levels
    heard.clear()
    await session.call("say", {})
    unasked = list(heard)
    heard.clear()
    await session.call_from_level("say")
    return [unasked, list(heard)]


async def _cancellation(session: Session) -> str:
    key = uuid4().hex
    await session.abandon("hang", {"key": key})
    return await session.call("was_abandoned", {"key": key})


async def _address(session: Session) -> list[str]:
    answer = await session.call("ask_address", {})
    return [answer, *session.heard.opened]


async def _subscription(session: Session) -> list[str]:
    async with session.subscribed(MEMO) as following:
        await session.call("write", {"text": "first"})
        told = [await following(), (await session.sdk.read_resource(MEMO)).contents[0].text]
    await session.call("write", {"text": "nothing"})
    return told


async def _completion(session: Session) -> list[str]:
    prompt = PromptReference(type="ref/prompt", name="journey")
    argument = {"name": "town", "value": "P"}
    return list((await session.sdk.complete(prompt, argument, CHOSEN)).completion.values)


def _asked(tool: str) -> Callable[[Session], Awaitable[str]]:
    async def ask(session: Session) -> str:
        return await session.call(tool, {})

    return ask


FEATURES: dict[str, Callable[[Session], Awaitable[Any]]] = {
    "form": _asked("ask_form"),
    "address": _address,
    "sample": _asked("ask_sample"),
    "sample with tools": _asked("ask_sample_with_tools"),
    "roots": _asked("ask_roots"),
    "progress": _progress,
    "logs": _logs,
    "cancellation": _cancellation,
    "subscription": _subscription,
    "completion": _completion,
}


async def attempt(feature: Callable[[Session], Awaitable[Any]], session: Session) -> Any:
    """Return what it saw, or why it saw nothing."""
    try:
        with anyio.fail_after(FEATURE_S):
            return await feature(session)
    except Exception as error:  # noqa: BLE001 - whatever a client raises is what is compared
        return {"error": f"{type(error).__name__}: {error}"}


async def _toured(url: str, connect: Connect) -> dict[str, Any]:
    """Return what was seen at one door."""
    seen: dict[str, Any] = {}
    try:
        async with connect(url, Heard()) as session:
            seen["version"] = session.version
            for name, feature in FEATURES.items():
                seen[name] = await attempt(feature, session)
    except Exception as error:  # noqa: BLE001 - a door that cannot be entered shall not hide what is behind others
        seen["error"] = f"{type(error).__name__}: {error}"
    return seen


async def report(meta: str, addresses: dict[str, str], connect: Connect) -> dict[str, Any]:
    """Return what was seen at each address, and of forms asked for at the door of the meta-tools, `meta`.

    Only servers with an address below `meta` are behind that door.
    """
    seen: dict[str, Any] = {}

    async def visit(names: Iterable[str]) -> None:
        for name in names:
            seen[name] = await _toured(addresses[name], connect)

    async with anyio.create_task_group() as group:
        for _, names in groupby(sorted(addresses), lambda name: name.rpartition("-")[0]):
            group.start_soon(visit, tuple(names))
    async with connect(meta, Heard()) as session:
        for name in (name for name, address in addresses.items() if address.startswith(f"{meta}/")):
            given = {"tool_path": f"{name}:ask_form", "arguments": {}}
            seen[name]["execute"] = await attempt(_executed(given), session)
    return seen


def _executed(given: dict[str, Any]) -> Callable[[Session], Awaitable[str]]:
    async def execute(session: Session) -> str:
        return await session.call("execute_mcp_tool", given)

    return execute


def run(connect: Connect, backend: str) -> None:
    """Print the report of `SCRIPT HOW META NAME=ADDRESS...` as JSON; HOW is the script's own."""

    async def main() -> None:
        addresses = dict(each.split("=", 1) for each in sys.argv[3:])
        print(json.dumps(await report(sys.argv[2], addresses, connect)))

    anyio.run(main, backend=backend)
