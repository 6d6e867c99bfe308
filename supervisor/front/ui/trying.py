"""Trying tools from a page: the search as a model gets it, a form for a tool's arguments, and the answer of a call.

It is done at the door of the meta-tools, as the person who asks: what they may not see is not there either.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from actors.catalogue.names.naming import tool_path
from actors.catalogue.names.resolution import Resolved
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.front.pages.api import View
from supervisor.front.pages.rights import REQUESTER
from supervisor.metatools import definitions
from supervisor.metatools.answers.confirmation_form import RUN
from supervisor.metatools.arguments.execution import KEY, PREFIX
from supervisor.metatools.texts import escape
from supervisor.service.asking.elicitations import PAGES, Action
from supervisor.service.asking.exchange import Exchange
from supervisor.service.client import Client
from supervisor.service.port import answer as answer_of

CLIENT: Final = "dashboard"
MAX_FIELDS: Final = 100
MAX_SHOWN_CHARS: Final = 200_000
MAX_BLOCKS: Final = 50
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


class ArgumentField(msgspec.Struct, frozen=True):
    """An argument of a tool; `choices` are texts."""

    name: str
    type: str
    required: bool
    description: str
    choices: list[str]


class AskedQuestion(msgspec.Struct, frozen=True):
    """A question about a call, and where it is answered; `confirms`: whether the tool may run, which is said here."""

    id: str
    message: str
    page: str
    confirms: bool


class PendingCall(msgspec.Struct, frozen=True):
    """What a call waits for, and the state with which that very call goes on."""

    continuation: str
    questions: list[AskedQuestion]


class CallAnswer(msgspec.Struct, frozen=True):
    """What a call gave, or what it waits for."""

    failed: bool
    took_ms: float
    blocks: list[AnswerBlock]
    pending: PendingCall | None = None


async def discover(view: View, query: str) -> SearchAnswer:
    """Return what `discover_mcp_tools` answers."""
    told = await _perform(view, definitions.DISCOVER, {"query": query})
    result = told.get("result") or {}
    answer = result.get("structuredContent") or {"tools": [], "message": _reason_of(told)}
    return SearchAnswer(answer, len(encode(answer)))


async def call(view: View, path: str, given: Mapping[str, Any], typed: Mapping[str, str]) -> CallAnswer:
    """Call a tool, and return what it answered, what it asks, or what went wrong.

    What was `typed` may have the continuation of an earlier call, and the word of whoever was asked whether it may run.
    """
    goes_on = {KEY: typed[KEY]} if typed.get(KEY) else {}
    confirmed = view.elicitations.find(typed.get("question", ""), view.principal)
    if goes_on and confirmed is not None and confirmed.confirms:
        action: Action = "accept" if typed.get("answer") == "accept" else "decline"
        view.elicitations.answer(confirmed, action, {RUN: action == "accept"})
    began = time.perf_counter()
    told = await _perform(view, definitions.EXECUTE, {"tool_path": path, "arguments": given, **goes_on})
    took_ms = (time.perf_counter() - began) * 1000
    result = told.get("result")
    if result is None:
        return CallAnswer(True, took_ms, [AnswerBlock(text=_reason_of(told))])
    if (pending := _pending(view, result.get("structuredContent"))) is not None:
        return CallAnswer(False, took_ms, [], pending)
    blocks = [_block(each) for each in result.get("content", [])[:MAX_BLOCKS] if isinstance(each, dict)]
    return CallAnswer(bool(result.get("isError")), took_ms, blocks or [AnswerBlock(text="(an empty answer)")])


def _pending(view: View, content: Any) -> PendingCall | None:
    if not isinstance(content, dict) or content.get("status") != "input_required":
        return None
    state, asked = content.get(KEY), content.get("questions")
    if not isinstance(state, str) or not state.startswith(PREFIX) or not isinstance(asked, dict):
        return None
    return PendingCall(state, [_asked(view, each) for each in asked.values() if isinstance(each, dict)])


def _asked(view: View, told: Mapping[str, Any]) -> AskedQuestion:
    name = str(told.get("page", "")).rpartition("/")[2]
    known = view.elicitations.find(name, view.principal)  # what a server writes as if it asked is none of ours
    return AskedQuestion(
        id=name if known is not None else "",
        message=make_visible(str(told.get("message", ""))),
        page=f"{PAGES}/{name}" if known is not None else "",
        confirms=known is not None and known.confirms,
    )


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
    return "\n".join(map(escape, text[:MAX_SHOWN_CHARS].split("\n")))


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


async def _perform(view: View, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    service = await view.service_for(REQUESTER.get().person)
    client = Client(principal=view.principal, name=CLIENT, version="2025-11-25")
    params = msgspec.Raw(encode({"name": tool, "arguments": given}))
    done = await answer_of(service, Exchange(client, b"1", "tools/call", params))
    told: dict[str, Any] = msgspec.json.decode(done.body)
    return told


def _reason_of(told: Mapping[str, Any]) -> str:
    return make_visible(str((told.get("error") or {}).get("message", "it gave no answer")))
