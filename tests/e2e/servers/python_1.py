"""A server of the official Python SDK 1.x that tells and asks everything: `python_1.py stdio|http`.

It runs in an environment of its own, which the type checker does not see. The SDK never announces that resources can be
subscribed to, so that is added.
"""

from __future__ import annotations

from typing import Any

from everything import (  # type: ignore[import-not-found]  # stands beside this script
    ADDRESS,
    QUESTION,
    Name,
    offer,
    remember,
    subscribers,
    tools,
    used,
)
from listening import run  # type: ignore[import-not-found]  # stands beside this script
from mcp.server.fastmcp import Context, FastMCP  # type: ignore[attr-defined]  # the SDK 2.x has none

server: Any = FastMCP("everything", log_level="WARNING")
offer(server)
server.tool(name="write")(remember)


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_form(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Name)
    return f"{answer.action} {answer.data.name}" if answer.action == "accept" else str(answer.action)


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_address(ctx: Context) -> str:
    return str((await ctx.elicit_url("Please open it", ADDRESS, "one")).action)


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_sample(ctx: Context) -> str:
    sample = await ctx.session.create_message([QUESTION], max_tokens=10, related_request_id=ctx.request_id)
    return str(sample.content.text)


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_sample_with_tools(ctx: Context) -> str:
    options = tools() | {"max_tokens": 10, "related_request_id": ctx.request_id}
    return str(used((await ctx.session.create_message([QUESTION], **options)).content))


@server.tool()  # type: ignore[untyped-decorator]  # not seen
async def ask_roots(ctx: Context) -> str:
    return " ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


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
