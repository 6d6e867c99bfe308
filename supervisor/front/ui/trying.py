"""Trying tools from a page: the search as a model gets it, a form for a tool's arguments, and the answer of a call.

It is done at the door of the meta-tools, as the person who asks: what they may not see is not there either.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from actors.catalogue.names import Resolved, tool_path
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue
from actors.command_line import command
from actors.errors import InvalidArguments
from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.agreement.versions import LATEST_MODERN
from actors.protocol.asking import forms, input_required
from actors.protocol.asking.forms import Form
from actors.protocol.asking.input_required import InputRequest, Retry
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.front.pages import question_form
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.view import View
from supervisor.metatools import definitions
from supervisor.metatools.texts import escape
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Client
from supervisor.service.port import answer as answer_of

_CLIENT: Final = "dashboard"
MAX_FIELDS: Final = 100
_MAX_SHOWN_CHARS: Final = 200_000
_MAX_BLOCKS: Final = 50
_MAX_CARRIED_BYTES: Final = 160_000
"""Of a call and what is asked about it, which the form for the answer brings back."""
_CAPABILITIES: Final = msgspec.Raw(b'{"elicitation":{"form":{},"url":{}}}')
"""What can be asked on the page of a tool (MCP 2026-07-28, client/elicitation)."""
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_SIMPLE: Final = frozenset({"string", "number", "integer", "boolean", "object", "array"})


class FoundTool(msgspec.Struct, frozen=True):
    """A tool that somebody may see, under the path that clients use."""

    path: str
    server: str
    tool: Tool


class SearchAnswer(msgspec.Struct, frozen=True):
    """What a search gives a model: the answer, and how many characters it has."""

    answer: dict[str, Any]
    size: int


class AnswerBlock(msgspec.Struct, frozen=True):
    """A part of an answer: a text, or an image as a `data:` address."""

    text: str = ""
    image: str = ""


class CallAnswer(msgspec.Struct, frozen=True):
    """What a call gave."""

    failed: bool
    took_ms: float
    blocks: list[AnswerBlock]


class CallQuestion(msgspec.Struct, frozen=True):
    """A question about a call; `form` is None for one that cannot be shown. `host`: where its address leads."""

    form: Form | None
    inputs: Sequence[question_form.PageInput]
    host: str


class CallQuestions(msgspec.Struct, frozen=True):
    """What is asked before a call has its answer. `carried`: the call, for `CarriedCall`; `wrong`: an answer was."""

    carried: str
    questions: list[CallQuestion]
    wrong: bool = False


class CarriedCall(msgspec.Struct, frozen=True):
    """A call that waits for answers: what was typed as its arguments, what is asked, and the state it goes on with.

    The page keeps it, as any client does. It is of use to whoever made the call alone, and once: what is asked under a
    state is one call, with the same arguments, of one principal.
    """

    typed: dict[str, str]
    asked: dict[str, InputRequest]
    state: str | None = None


class ArgumentField(msgspec.Struct, frozen=True):
    """An argument of a tool; `choices` are texts."""

    name: str
    type: str
    required: bool
    description: str
    choices: list[str]


async def discover(view: View, query: str) -> SearchAnswer:
    """Return what `discover_mcp_tools` answers."""
    told = await _perform(view, definitions.DISCOVER, {"query": query}, Client(name=_CLIENT, version="2025-11-25"))
    result = told.get("result") or {}
    answer = result.get("structuredContent") or {"tools": [], "message": _reason_of(told)}
    return SearchAnswer(answer, len(encode(answer)))


async def call(
    view: View, found: FoundTool, typed: Mapping[str, str], retry: Retry | None = None
) -> CallAnswer | CallQuestions:
    """Call a tool with what was typed, or go on with that call; return what it answered, or asks first.

    The page is a client that can be asked by incomplete results, so that a person answers there and then.
    """
    began = time.perf_counter()
    size = sum(map(len, typed.values()))
    given = await view.bench.run(size, arguments, found.tool, typed)
    told = await _perform(view, definitions.EXECUTE, {"tool_path": found.path, "arguments": given}, _ASKABLE, retry)
    took_ms = (time.perf_counter() - began) * 1000
    result = told.get("result")
    if result is None:
        return CallAnswer(True, took_ms, [AnswerBlock(text=_reason_of(told))])
    if result.get("resultType") == input_required.KIND:
        asked = await view.bench.run(size, _questions, typed, result)
        if asked is not None:
            return asked
        text = f"It asks for more than this page can show. On the command line: {command('call', found.path)}"
        return CallAnswer(True, took_ms, [AnswerBlock(text=text)])
    blocks = [_block(each) for each in result.get("content", [])[:_MAX_BLOCKS] if isinstance(each, dict)]
    if not blocks and "structuredContent" in result:
        blocks = [
            AnswerBlock(text=make_visible(msgspec.json.format(encode(result["structuredContent"]), indent=2).decode()))
        ]
    return CallAnswer(bool(result.get("isError")), took_ms, blocks or [AnswerBlock(text="(an empty answer)")])


def carried_call(text: str) -> CarriedCall:
    """Return the call that a form brought back. Raises `InvalidArguments`."""
    try:
        return json.read(_carried, msgspec.Raw(text.encode()))
    except json.UnreadableJson:
        raise InvalidArguments("this form does not say which call it is about: call the tool again") from None


def answer_of_person(
    call: CarriedCall, typed: Mapping[str, list[str]], files: Mapping[str, str], *, agrees: bool
) -> Retry | CallQuestions:
    """Return the answers to all questions of a call, or the questions again if some are not filled in as they should.

    Who does not agree declines all of them.
    """
    answers: dict[str, Any] = {}
    again: list[CallQuestion] = []
    is_wrong = False
    for number, (key, request) in enumerate(call.asked.items()):
        content: dict[str, Any] = {}
        problems: dict[str, str] = {}
        form = _form_of(request)
        if form is not None and agrees:
            content = question_form.content_of(form, typed, files, _prefix(number))
            problems = forms.wrong(form, content)
        is_wrong = is_wrong or bool(problems)
        again.append(_question(number, form, content, problems))
        answers[key] = _answer(form, content, agrees)
    if is_wrong:
        return CallQuestions(encode(call).decode(), again, wrong=True)
    state = json.NO_RAW if call.state is None else msgspec.Raw(encode(call.state))  # what was not said is not told
    return Retry(msgspec.Raw(encode(answers)), state)


def _answer(form: Form | None, content: Mapping[str, Any], agrees: bool) -> dict[str, Any]:
    if form is None:  # nobody has seen it
        return {"action": "cancel"}
    if not agrees:
        return {"action": "decline"}
    return {"action": "accept"} if form.url else {"action": "accept", "content": content}


def _questions(typed: Mapping[str, str], result: Mapping[str, Any]) -> CallQuestions | None:
    """Return what an incomplete result asks; None for more than a form can bring back."""
    required = input_required.read(msgspec.Raw(encode(result)))
    state = json.read_or(json.STRING, required.state, None)
    carried = encode(CarriedCall(dict(typed), required.requests, state)).decode()
    if len(carried) > _MAX_CARRIED_BYTES:
        return None
    shown = [_question(number, _form_of(each), {}, {}) for number, each in enumerate(required.requests.values())]
    return CallQuestions(carried, shown)


def _question(number: int, form: Form | None, content: Mapping[str, Any], problems: Mapping[str, str]) -> CallQuestion:
    if form is None:
        return CallQuestion(None, (), "")
    filled = question_form.inputs(form, content, problems, _prefix(number))
    return CallQuestion(form, filled, question_form.host_of(form.url))


def _form_of(request: InputRequest) -> Form | None:
    return forms.read(request.params) if request.method == ELICIT else None


def _prefix(number: int) -> str:
    """Return what the inputs of one question are called before the names of its fields."""
    return f"{number}.{question_form.PREFIX}"


def find(catalogue: Catalogue, path: str) -> FoundTool | None:
    """Return the tool at a path; None if there is none that can be seen."""
    resolved = catalogue.tool(path)
    if not isinstance(resolved, Resolved):
        return None
    tool = catalogue.entries[resolved.server].tools[resolved.name]
    return FoundTool(tool_path(resolved.server, tool.name), resolved.server, tool)


def fields_of(tool: Tool) -> list[ArgumentField]:
    """Return a field for each argument that the schema of a tool names."""
    schema: Any = json.read_or(json.VALUE, bytes(tool.input_schema), {})
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return []
    return [_field(name, each, name in tool.required) for name, each in [*properties.items()][:MAX_FIELDS]]


def _field(name: str, schema: Any, required: bool) -> ArgumentField:
    schema = schema if isinstance(schema, dict) else {}
    kind = schema.get("type")
    choices = (
        [str(each) for each in schema.get("enum", [])][:MAX_FIELDS] if isinstance(schema.get("enum"), list) else []
    )
    if kind == "boolean":
        choices = ["true", "false"]
    return ArgumentField(
        name=name,
        type=kind if isinstance(kind, str) and kind in _SIMPLE else "any",
        required=required,
        description=str(schema.get("description", ""))[:300],
        choices=choices,
    )


def arguments(tool: Tool, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return what was typed as arguments: what is no text is read as JSON; what is empty was left out."""
    kinds = {field.name: field.type for field in fields_of(tool)}
    return {
        name: text if kinds.get(name) == "string" else json.read_or(json.VALUE, text.encode(), text)
        for name, text in typed.items()
        if text
    }


def format_schema(schema: msgspec.Raw) -> str:
    """Return a schema with line ends, as far as it can be read."""
    return msgspec.json.format(bytes(schema), indent=2).decode(errors="replace")


def make_visible(text: str) -> str:
    """Return a text of several lines in which nothing is invisible."""
    return "\n".join(map(escape, text[:_MAX_SHOWN_CHARS].split("\n")))


def _block(content: Mapping[str, Any]) -> AnswerBlock:
    kind, data = content.get("mimeType"), content.get("data")
    if content.get("type") == "image" and kind in _IMAGES and isinstance(data, str) and data.isascii():
        return AnswerBlock(image=f"data:{kind};base64,{data}")
    text = content.get("text")
    if content.get("type") == "text" and isinstance(text, str):
        try:
            return AnswerBlock(text=make_visible(msgspec.json.format(text, indent=2)))
        except msgspec.DecodeError:
            return AnswerBlock(text=make_visible(text))
    return AnswerBlock(text=make_visible(msgspec.json.format(encode(dict(content)), indent=2).decode()))


_carried = msgspec.json.Decoder(CarriedCall)
_ASKABLE: Final = Client(era="modern", version=LATEST_MODERN, name=_CLIENT, capabilities=_CAPABILITIES)


async def _perform(
    view: View, tool: str, given: Mapping[str, Any], client: Client, retry: Retry | None = None
) -> dict[str, Any]:
    service = await view.service_for(REQUESTER.get().person)
    client = msgspec.structs.replace(client, principal=view.principal)
    params = msgspec.Raw(encode({"name": tool, "arguments": given}))
    done = await answer_of(service, Exchange(client, b"1", "tools/call", params, retry=retry))
    told: dict[str, Any] = msgspec.json.decode(done.body)
    return told


def _reason_of(told: Mapping[str, Any]) -> str:
    return make_visible(str((told.get("error") or {}).get("message", "it gave no answer")))
