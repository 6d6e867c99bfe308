"""A server of the official Python SDK 2.x that tells and asks everything, in both eras: `python_2.py stdio|http`.

It asks by incomplete results in the modern era, and by requests in the legacy one, where the SDK leaves subscriptions
and levels to the server.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Annotated, Any

import anyio
from listening import run  # type: ignore[import-not-found]  # stands beside this script
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    EmptyResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

MEMO = "memo://one"
ADDRESS = "https://example.com/open"
PATIENCE_S = 10.0

server = MCPServer("everything", log_level="WARNING")
subscribers: set[Any] = set()
memos = ["nothing"]
abandoned: dict[str, anyio.Event] = defaultdict(anyio.Event)


class Name(BaseModel):
    """What is asked for by a form."""

    name: str


def form() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


def sample() -> Sample:
    said = SamplingMessage(role="user", content=TextContent(type="text", text="Capital of France?"))
    return Sample([said], max_tokens=10)


def roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def ask_form(answer: Annotated[ElicitationResult[Name], Resolve(form)]) -> str:
    return f"accept {answer.data.name}" if isinstance(answer, AcceptedElicitation) else answer.action


@server.tool(structured_output=False)
async def ask_address(ctx: Context) -> str | InputRequiredResult:
    if (ctx.protocol_version or "") < "2026":
        return str((await ctx.elicit_url("Please open it", ADDRESS, "one")).action)
    answer = (ctx.input_responses or {}).get("address")
    if isinstance(answer, ElicitResult):
        return answer.action
    asked = ElicitRequest(params=ElicitRequestURLParams(message="Please open it", url=ADDRESS))
    return InputRequiredResult(input_requests={"address": asked})


@server.tool()
async def ask_sample(answer: Annotated[CreateMessageResult, Resolve(sample)]) -> str:
    return answer.content.text if isinstance(answer.content, TextContent) else answer.content.type


@server.tool()
async def ask_roots(answer: Annotated[ListRootsResult, Resolve(roots)]) -> str:
    return " ".join(str(root.uri) for root in answer.roots)


@server.tool()
async def work(ctx: Context) -> str:
    for step in (1, 2, 3):
        await ctx.report_progress(step, 3)
    return "worked"


@server.tool()
async def say(ctx: Context) -> str:
    levels: tuple[Any, ...] = ("debug", "info", "warning", "error")
    for level in levels:
        await ctx.log(level, f"said as {level}")
    return "said"


@server.tool()
async def hang(key: str, ctx: Context) -> str:
    await ctx.report_progress(1)
    try:
        await anyio.sleep_forever()
    finally:
        abandoned[key].set()
    return "never"


@server.tool()
async def was_abandoned(key: str) -> str:
    with anyio.move_on_after(PATIENCE_S):
        await abandoned[key].wait()
    return "yes" if abandoned[key].is_set() else "no"


@server.tool()
async def write(text: str, ctx: Context) -> str:
    memos.append(text)
    await ctx.notify_resource_updated(MEMO)
    for session in list(subscribers):
        await session.send_resource_updated(MEMO)
    return text


@server.resource(MEMO)
def memo() -> str:
    return memos[-1]


async def subscribe(ctx: Any, params: SubscribeRequestParams) -> EmptyResult:
    subscribers.add(ctx.session)
    return EmptyResult()


async def unsubscribe(ctx: Any, params: UnsubscribeRequestParams) -> EmptyResult:
    subscribers.discard(ctx.session)
    return EmptyResult()


async def set_level(ctx: Any, params: SetLevelRequestParams) -> EmptyResult:
    """Every level is told; the daemon chooses."""
    return EmptyResult()


lowlevel = server._lowlevel_server
lowlevel.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
lowlevel.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)
lowlevel.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of features that the newest revision has given up
    run(server)
