"""A server of the official Python SDK 1.x that tells and asks everything: `python_1.py stdio|http`.

It runs in an environment of its own, which the type checker does not see. The SDK never announces that resources can be
subscribed to, so that is added.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import anyio
from listening import run  # type: ignore[import-not-found]  # stands beside this script
from mcp.server.fastmcp import Context, FastMCP  # type: ignore[attr-defined]  # the SDK 2.x has none
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

MEMO = "memo://one"
ADDRESS = "https://example.com/open"
PATIENCE_S = 10.0

server: Any = FastMCP("everything", log_level="WARNING")
subscribers: set[Any] = set()
memos = ["nothing"]
abandoned: dict[str, anyio.Event] = defaultdict(anyio.Event)


class Name(BaseModel):
    """What is asked for by a form."""

    name: str


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_form(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Name)
    return f"{answer.action} {answer.data.name}" if answer.action == "accept" else str(answer.action)


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_address(ctx: Context) -> str:
    return str((await ctx.elicit_url("Please open it", ADDRESS, "one")).action)


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_sample(ctx: Context) -> str:
    said = SamplingMessage(role="user", content=TextContent(type="text", text="Capital of France?"))
    sample = await ctx.session.create_message([said], max_tokens=10, related_request_id=ctx.request_id)
    return str(sample.content.text)


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_roots(ctx: Context) -> str:
    return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def work(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
    return "worked"


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def say(ctx: Context) -> str:
    for level in ("debug", "info", "warning", "error"):
        await ctx.log(level, f"said as {level}")
    return "said"


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def hang(key: str, ctx: Context) -> str:
    await ctx.report_progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        abandoned[key].set()
    return "never"


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def was_abandoned(key: str) -> str:
    with anyio.move_on_after(PATIENCE_S):
        await abandoned[key].wait()
    return "yes" if abandoned[key].is_set() else "no"


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def write(text: str) -> str:
    memos.append(text)
    for session in list(subscribers):
        await session.send_resource_updated(MEMO)
    return text


@server.resource(MEMO)  # type: ignore[untyped-decorator]  # not seen
def memo() -> str:
    return memos[-1]


async def subscribe(uri: Any) -> None:
    subscribers.add(lowlevel.request_context.session)


async def unsubscribe(uri: Any) -> None:
    subscribers.discard(lowlevel.request_context.session)


async def set_level(level: str) -> None:
    """Every level is told; the daemon chooses."""


def announce(*arguments: Any) -> Any:
    capabilities = announced(*arguments)
    capabilities.resources.subscribe = True
    return capabilities


lowlevel: Any = server._mcp_server
lowlevel.subscribe_resource()(subscribe)
lowlevel.unsubscribe_resource()(unsubscribe)
lowlevel.set_logging_level()(set_level)
announced = lowlevel.get_capabilities
lowlevel.get_capabilities = announce

if __name__ == "__main__":
    run(server)
