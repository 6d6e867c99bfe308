"""What the servers of both Python SDKs tell and offer in the same way; each asks, and tells of changes, in its own.

It runs in both environments.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import anyio
from mcp.types import Completion, SamplingMessage, TextContent, Tool, ToolChoice
from pydantic import BaseModel

try:
    from mcp.server.mcpserver import Context
except ImportError:  # the SDK 1.x
    from mcp.server.fastmcp import Context  # type: ignore[attr-defined, no-redef]  # the SDK 2.x has none

MEMO = "memo://one"
ADDRESS = "https://example.com/open"
QUESTION = SamplingMessage(role="user", content=TextContent(type="text", text="Capital of France?"))
PATIENCE_S = 10.0
TOWNS = {"France": ["Lyon", "Paris"], "Poland": ["Poznan"]}

subscribers: set[Any] = set()
memos = ["nothing"]
abandoned: dict[str, anyio.Event] = defaultdict(anyio.Event)


class Name(BaseModel):
    """What is asked for by a form."""

    name: str


def tools() -> dict[str, Any]:
    """Return what a sample with tools is asked for with."""
    schema = {"type": "object", "properties": {"country": {"type": "string"}}, "required": ["country"]}
    definition = Tool.model_validate({"name": "capital_of", "inputSchema": schema})
    return {"tools": [definition], "tool_choice": ToolChoice(mode="required")}


def used(content: Any) -> str:
    """Return which tool a sample wants to use, on what, by which choice: the client makes an id of that."""
    (use,) = content
    return f"{use.type} {use.id} {use.name} {use.input['country']}"


async def work(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
    return "worked"


async def say(ctx: Context) -> str:
    levels: tuple[Any, ...] = ("debug", "info", "warning", "error")
    for level in levels:
        await ctx.log(level, f"said as {level}")
    return "said"


async def hang(key: str, ctx: Context) -> str:
    await ctx.report_progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        abandoned[key].set()
    return "never"


async def was_abandoned(key: str) -> str:
    with anyio.move_on_after(PATIENCE_S):
        await abandoned[key].wait()
    return "yes" if abandoned[key].is_set() else "no"


async def remember(text: str) -> str:
    """Change the memo, and tell those who are subscribed in the legacy era."""
    memos.append(text)
    for session in list(subscribers):
        await session.send_resource_updated(MEMO)
    return text


def memo() -> str:
    return memos[-1]


def journey(country: str, town: str) -> str:
    return f"Plan a journey to {town} in {country}."


async def towns(ref: Any, argument: Any, context: Any) -> Completion:
    """Return the towns of the country that was chosen before."""
    known = TOWNS[context.arguments["country"]]
    return Completion(values=[town for town in known if town.startswith(argument.value)])


def offer(server: Any) -> None:
    """Add all of it to a `FastMCP` or an `MCPServer`."""
    for tool in (work, say, hang, was_abandoned):
        server.tool()(tool)
    server.resource(MEMO)(memo)
    server.prompt()(journey)
    server.completion()(towns)
