"""A server of the official Python SDK 2.x that tells and asks everything, in both eras: `python_2.py stdio|http`.

It asks by incomplete results in the modern era, and by requests in the legacy one, where the SDK leaves subscriptions
and levels to the server.
"""

from __future__ import annotations

import warnings
from typing import Annotated, Any

from everything import (  # type: ignore[import-not-found]  # stands beside this script
    ADDRESS,
    MEMO,
    QUESTION,
    Name,
    offer,
    remember,
    subscribers,
    tools,
    used,
)
from listening import run  # type: ignore[import-not-found]  # stands beside this script
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    EmptyResult,
    InputRequiredResult,
    ListRootsResult,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)

server = MCPServer("everything", log_level="WARNING")
offer(server)


def form() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


def sample() -> Sample:
    return Sample([QUESTION], max_tokens=10)


def sample_with_tools() -> Sample:
    return Sample([QUESTION], max_tokens=10, **tools())


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
async def ask_sample_with_tools(
    answer: Annotated[CreateMessageResultWithTools, Resolve(sample_with_tools)],
) -> str:
    return str(used(answer.content))


@server.tool()
async def ask_roots(answer: Annotated[ListRootsResult, Resolve(roots)]) -> str:
    return " ".join(str(root.uri) for root in answer.roots)


@server.tool()
async def write(text: str, ctx: Context) -> str:
    written = str(await remember(text))
    await ctx.notify_resource_updated(MEMO)
    return written


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
