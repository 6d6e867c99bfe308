"""What a plugin asks whoever makes a call, and what they answer. The author of a plugin that asks imports this, too.

    REASON = UserQuestion("reason", "Why is this needed?", TextInput(max_chars=200))

    async def before_call(self, call: ToolCall) -> UserQuestion[str] | Rejection | None:
        reason = call.answer(REASON)
        if reason is None:
            return REASON  # the daemon asks, and calls this again
        return None if reason.accepted else Rejection("nobody said why")

A question is a form of MCP (2025-11-25, client/elicitation) with one field, or with several (`FormInput`). It has a key
of its own within its plugin. Its answer is read against the form again, whoever gave it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct

from actors.protocol.asking import forms
from actors.protocol.asking.questions import MAX_FORM_BYTES
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from actors.transport.redaction import Confidential

T = TypeVar("T")
Action = Literal["accept", "decline", "cancel", "none"]
"""What somebody did with a form; `none`: nobody answered in time, or could be asked."""
Choices = Mapping[str, str] | Sequence[str]
"""The values that there are, with what is shown of each where that is another text."""
KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FIELD: Final = "answer"
"""The one field of a form that has one."""


class GivenAnswer(Confidential, Struct, frozen=True):
    """What came back of a question, unread. `content` is JSON, an object by the names of the fields."""

    action: Action = "none"
    content: bytes = b"{}"


class UserAnswer(Confidential, Struct, Generic[T], frozen=True):
    """What somebody answered. There is a `value` if it was accepted."""

    action: Action
    value: T | None = None

    @property
    def accepted(self) -> bool:
        return self.action == "accept"


class QuestionInput(Struct, Generic[T], frozen=True, kw_only=True):
    """The base of what a question is answered with. `required`: it cannot be left empty."""

    title: str = ""
    description: str = ""
    required: bool = True

    def schema(self) -> dict[str, Any]:
        """Return what is special of the JSON schema of the field."""
        raise NotImplementedError

    def read(self, value: Any) -> T:
        """Return what was filled in, which fits the schema."""
        kept: T = value
        return kept

    def form(self) -> dict[str, dict[str, Any]]:
        """Return the schemas of the fields by their names."""
        return {_FIELD: self.field()}

    def needs(self) -> list[str]:
        """Return the names of the fields that have to be filled in."""
        return [_FIELD] if self.required else []

    def read_form(self, content: Mapping[str, Any]) -> T | None:
        return self.read(content[_FIELD]) if _FIELD in content else None

    def field(self) -> dict[str, Any]:
        said = {"title": self.title, "description": self.description}
        return {**self.schema(), **{key: text for key, text in said.items() if text}}


class ConfirmationInput(QuestionInput[bool], frozen=True, kw_only=True):
    """A yes or a no. Nobody who does not answer has said yes."""

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean", "default": False}


class TextInput(QuestionInput[str], frozen=True, kw_only=True):
    """A text. `format` is one of MCP's: `email`, `uri`, `date`, `date-time`."""

    min_chars: int = 0
    max_chars: int | None = None
    format: str = ""
    default: str | None = None

    def schema(self) -> dict[str, Any]:
        bounds = {"minLength": self.min_chars or None, "maxLength": self.max_chars}
        return _present({"type": "string", **bounds, "format": self.format or None, "default": self.default})


class SecretInput(QuestionInput[str], frozen=True, kw_only=True):
    """A password or a key. No model is asked for it."""

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "format": "password", "writeOnly": True}


class FileInput(QuestionInput[bytes], frozen=True, kw_only=True):
    """The content of one file, of at most 180 KiB on a page."""

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "contentEncoding": "base64"}

    def read(self, value: Any) -> bytes:
        return base64.b64decode(value)


class SelectInput(QuestionInput[str], frozen=True, kw_only=True):
    """One of some values."""

    choices: Choices
    default: str | None = None

    def schema(self) -> dict[str, Any]:
        shown = list(self.choices.values()) if isinstance(self.choices, Mapping) else None
        return _present({"type": "string", "enum": list(self.choices), "enumNames": shown, "default": self.default})


class MultiselectInput(QuestionInput[tuple[str, ...]], frozen=True, kw_only=True):
    """Some of some values: at least and at most so many."""

    choices: Choices
    least: int = 0
    most: int | None = None
    default: tuple[str, ...] | None = None

    def schema(self) -> dict[str, Any]:
        items: dict[str, Any] = {"type": "string", "enum": list(self.choices)}
        if isinstance(self.choices, Mapping):
            items = {"anyOf": [{"const": value, "title": shown} for value, shown in self.choices.items()]}
        bounds = {"minItems": self.least or None, "maxItems": self.most}
        return _present({"type": "array", "items": items, **bounds, "default": self.default})

    def read(self, value: Any) -> tuple[str, ...]:
        return tuple(value)


class FormInput(QuestionInput[dict[str, Any]], frozen=True, kw_only=True):
    """Several fields by their names. The answer has those that were filled in."""

    fields: Mapping[str, QuestionInput[Any]]

    def form(self) -> dict[str, dict[str, Any]]:
        return {name: each.field() for name, each in self.fields.items()}

    def needs(self) -> list[str]:
        return [name for name, each in self.fields.items() if each.required]

    def read_form(self, content: Mapping[str, Any]) -> dict[str, Any]:
        return {name: each.read(content[name]) for name, each in self.fields.items() if name in content}


class UserQuestion(Struct, Generic[T], frozen=True):
    """A question: its `key` within the plugin, the `message` that a person is shown, and how it is answered.

    Raises `ValueError` for one that cannot be asked: no form of it fits what a page shows, or its key is none.
    """

    key: str
    message: str
    input: QuestionInput[T]

    def __post_init__(self) -> None:
        """Refuse what nobody could be asked."""
        if KEY.fullmatch(self.key) is None:
            raise ValueError("a key has 1 to 64 letters, digits, _ and -")
        params = self.params
        form = forms.read(msgspec.Raw(params)) if len(params) <= MAX_FORM_BYTES else None
        if form is None or not form.message or not form.fields:
            raise ValueError("a form has a message, at least one field, and no more than a page can show")

    @property
    def params(self) -> bytes:
        """The params of `elicitation/create`, as JSON."""
        schema: dict[str, Any] = {"type": "object", "properties": self.input.form()}
        if needed := self.input.needs():
            schema["required"] = needed
        return encode({"message": self.message, "requestedSchema": schema})

    def read(self, given: GivenAnswer | None) -> UserAnswer[T] | None:
        """Return an answer by what was asked: what does not fit the form counts as cancelled."""
        if given is None or given.action != "accept":
            return None if given is None else UserAnswer(given.action)
        form = forms.read(msgspec.Raw(self.params))
        content = json.read_or(json.VALUE, given.content, None)
        if form is None or not isinstance(content, dict) or forms.wrong(form, content):
            return UserAnswer("cancel")
        return UserAnswer("accept", self.input.read_form(content))


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in members.items() if value is not None}
