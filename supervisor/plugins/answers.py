"""What hooks may answer, and how that is read: whatever else comes of one is `UnusableAnswer`. Pure."""

from __future__ import annotations

import inspect
from typing import Any, Final

import msgspec

from actors.catalogue.lists import Unusable, tool
from actors.catalogue.offer import Tool
from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.asking import forms
from actors.protocol.asking.questions import refusal
from actors.protocol.wire import json
from supervisor.plugins.contract import Rejection, ToolCall, ToolDefinition
from supervisor.plugins.questions import KEY, UserQuestion

MAX_REASON_CHARS: Final = 500
MAX_ARGUMENT_BYTES: Final = 16 * 1024 * 1024
MAX_RESULT_BYTES: Final = 64 * 1024 * 1024


class PluginQuestion(msgspec.Struct, frozen=True):
    """What a hook wants to know before it decides. `params` are those of `elicitation/create`, of a form."""

    key: str
    params: msgspec.Raw


class UnusableAnswer(ValueError):
    """A hook returned what it must not return. The text says what that is, without the value."""


def read_verdict(value: Any) -> Rejection | None:
    """Read the answer of `before_discovery` and `hide_tool`."""
    return value if value is None else _rejection(value)


def read_nothing(value: Any) -> None:
    """Read the answer of `after_discovery`."""
    if value is not None:
        raise _unusable(value)


def read_arguments(value: Any, given: ToolCall, most: int) -> Rejection | PluginQuestion | bytes | None:
    """Read the answer of `before_call` to a call, which may ask `most` questions; bytes are a JSON object."""
    if value is None:
        return None
    if isinstance(value, UserQuestion):
        return _question(value, given, most)
    if isinstance(value, (dict, bytes)):
        return _object(value, MAX_ARGUMENT_BYTES)
    return _rejection(value)


def read_result(value: Any, given: ToolCall, most: int) -> PluginQuestion | bytes | None:
    """Read the answer of `after_call` to a call: a JSON object, or a question."""
    if isinstance(value, UserQuestion):
        return _question(value, given, most)
    return None if value is None else _object(value, MAX_RESULT_BYTES)


def read_tool(value: Any, given: ToolDefinition) -> Tool | Rejection | None:
    """Read the answer of `transform_tool`; None for a definition that stays as it was `given`."""
    if value is None or value is given:
        return None
    if not isinstance(value, ToolDefinition) or not isinstance(value.text, bytes):
        return _rejection(value)
    if value.text == given.text:
        return None
    try:
        changed = tool(msgspec.Raw(value.text))
    except Unusable:
        raise UnusableAnswer("a definition that is of no use") from None
    if changed.name != given.name:
        raise UnusableAnswer("a definition with another name")
    return changed


def _question(value: UserQuestion[Any], given: ToolCall, most: int) -> PluginQuestion:
    if value.key in given.answers:
        raise UnusableAnswer("a question that was asked before")
    if len(given.answers) >= most:
        raise UnusableAnswer(f"more questions than {most} (max_questions_per_call)")
    params = msgspec.Raw(value.params)
    if KEY.fullmatch(value.key) is None:
        raise UnusableAnswer("a question without a key")
    if refusal(ELICIT, params) is not None or forms.read(params) is None:
        raise UnusableAnswer("a question that cannot be shown")
    return PluginQuestion(value.key, params)


def _rejection(value: Any) -> Rejection:
    if not isinstance(value, Rejection) or not isinstance(value.reason, str):
        raise _unusable(value)
    seen = "".join(each if each.isprintable() else " " for each in value.reason[:MAX_REASON_CHARS]).strip()
    return Rejection(seen or "it gave no reason")


def _object(value: Any, limit: int) -> bytes:
    """Return JSON of an object that was decoded, or that was written."""
    if not isinstance(value, (dict, bytes)):
        raise _unusable(value)
    try:
        text = value if isinstance(value, bytes) else msgspec.json.encode(value)
        json.read(json.MEMBERS, text)
    except (json.UnreadableJson, TypeError, ValueError, RecursionError):
        raise UnusableAnswer("what is no JSON object") from None
    if len(text) > limit:
        raise UnusableAnswer(f"over {limit} bytes")
    return text


def _unusable(value: Any) -> UnusableAnswer:
    if inspect.iscoroutine(value):
        value.close()
        return UnusableAnswer("a coroutine from a function that is not async")
    return UnusableAnswer(f"a value of the type {type(value).__name__[:100]}")
