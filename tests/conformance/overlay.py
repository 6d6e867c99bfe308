"""Lets the reference server ask in one era what its tools ask in the other one.

The reference has tools that ask by requests of their own (legacy) and others that ask by incomplete results (modern).
A suite of one era in front of a server of the other needs each tool to ask in the server's way. Texts, schemas and
names stay the reference's: its own functions are run, with another context.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
from mcp.server.elicitation import elicit_with_validation
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import Prompt
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

ASKING = ("test_sampling", "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums")
"""Tools of the reference that ask by requests."""
INCOMPLETE = "test_input_required_result_"
"""What the tools and the prompt of the reference that ask by incomplete results begin with."""
NEEDING = "test_missing_capability"
"""The tool of the reference that fails where the client of the request has not declared that it gives samples."""
ROUNDS = 5
ANSWERS = {
    "sampling/createMessage": CreateMessageResult,
    "elicitation/create": ElicitResult,
    "roots/list": ListRootsResult,
}
Function = Callable[..., Awaitable[Any]]


def ask_by_results(reference: Any) -> None:
    """Make the tools that ask by requests do it by incomplete results."""
    for name in ASKING:
        _replace_tool(reference.mcp, name, getattr(reference, name), _interrupted, str | InputRequiredResult)


def ask_by_requests(reference: Any) -> None:
    """Make the tools and the prompt that ask by incomplete results do it by requests."""
    for name in [each for each in vars(reference) if each.startswith(INCOMPLETE) and not each.endswith("_prompt")]:
        _replace_tool(reference.mcp, name, getattr(reference, name), _interviewed, str)
    reference.mcp.remove_tool(NEEDING)
    reference.mcp.add_tool(_needing_a_sample, name=NEEDING, description="Needs a sample")
    name = f"{INCOMPLETE}prompt"
    prompt = _dressed(getattr(reference, name), _interviewed, list)
    reference.mcp.remove_prompt(name)
    reference.mcp.add_prompt(Prompt.from_function(prompt, name=name))


async def _needing_a_sample(ctx: Context) -> str:
    """Ask for one: of the client of a request a legacy server knows only what it answers."""
    question = SamplingMessage(role="user", content=TextContent(type="text", text="Say hello"))
    params = CreateMessageRequestParams(messages=[question], max_tokens=10)
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        await ctx.session.send_request(CreateMessageRequest(params=params), CreateMessageResult, metadata=related)
    except MCPError as refused:
        raise ToolError(f"This tool needs a sample: {refused}") from refused
    return "It has got a sample."


def _replace_tool(server: Any, name: str, function: Function, how: Function, returned: Any) -> None:
    server.remove_tool(name)
    server.add_tool(_dressed(function, how, returned), name=name)


def _dressed(function: Function, how: Function, returned: Any) -> Function:
    """Return what runs `how` on `function`, and looks to the SDK as it does, but for what it returns."""

    @functools.wraps(function)
    async def call(**arguments: Any) -> Any:
        return await how(function, arguments)

    call.__dict__["__signature__"] = inspect.signature(function).replace(return_annotation=returned)
    call.__annotations__ = {**function.__annotations__, "return": returned}
    return call


class _Interruption(BaseException):
    """A question without an answer. The tools of the reference catch every `Exception`."""

    def __init__(self, question: ElicitRequest | CreateMessageRequest) -> None:
        self.question = question


class _Session:
    """In the place of a context and its session: answers from what the client sent, or interrupts the tool."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.session = self
        self.request_id = ""

    async def elicit(self, message: str, schema: Any) -> Any:
        session: Any = self
        return await elicit_with_validation(session, message, schema)

    async def elicit_form(self, message: str, requested_schema: dict[str, Any], related_request_id: Any) -> Any:
        del related_request_id
        params = ElicitRequestFormParams(message=message, requested_schema=requested_schema)
        return self._answered("elicitation", ElicitRequest(params=params))

    async def create_message(self, messages: Any, max_tokens: int, related_request_id: Any) -> Any:
        del related_request_id
        params = CreateMessageRequestParams(messages=messages, max_tokens=max_tokens)
        return self._answered("sampling", CreateMessageRequest(params=params))

    def _answered(self, key: str, question: ElicitRequest | CreateMessageRequest) -> Any:
        if key not in self._answers:
            raise _Interruption(question)
        return self._answers[key]


async def _interrupted(function: Function, arguments: dict[str, Any]) -> Any:
    """Run a tool from its beginning up to its question, which becomes an incomplete result; or to its end."""
    try:
        return await function(**arguments | {"ctx": _Session(arguments["ctx"].input_responses or {})})
    except _Interruption as interruption:
        question = interruption.question
        key = "elicitation" if isinstance(question, ElicitRequest) else "sampling"
        return InputRequiredResult(input_requests={key: question})


class _Context:
    """A context with answers to an incomplete result."""

    def __init__(self, context: Any, answers: Mapping[str, Any] | None, state: str | None) -> None:
        self._context = context
        self.input_responses = answers
        self.request_state = state

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


async def _interviewed(function: Function, arguments: dict[str, Any]) -> Any:
    """Run a tool, ask what it wants to know, all at once, and run it again with the answers, until it is content."""
    context = arguments["ctx"]
    answers, state = None, None
    for _ in range(ROUNDS):
        result = await function(**arguments | {"ctx": _Context(context, answers, state)})
        if not isinstance(result, InputRequiredResult):
            return result
        answers = await _asked(context, result.input_requests or {})
        state = result.request_state
    return "It asks for ever."


async def _asked(context: Any, questions: Mapping[str, Any]) -> dict[str, Any]:
    answers: dict[str, Any] = {}

    async def ask(key: str, question: Any) -> None:
        related = ServerMessageMetadata(related_request_id=context.request_id)
        answers[key] = await context.session.send_request(question, ANSWERS[question.method], metadata=related)

    async with anyio.create_task_group() as group:
        for key, question in questions.items():
            group.start_soon(ask, key, question)
    return answers
