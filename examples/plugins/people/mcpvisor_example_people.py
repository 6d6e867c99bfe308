"""Has whoever makes a call fill in arguments of chosen tools, which no model is to choose.

    "plugins": {
      "people": {
        "ask": [
          {"tools": ["tickets:close"], "argument": "why", "message": "Why?", "kind": "select", "choices": ["a", "b"]},
          {"tools": ["mail:send"], "argument": "to", "message": "To whom?", "format": "email"}
        ]
      }
    }

`kind` is `text`, or `confirmation`, `secret`, `select`, `multiselect`, `file`, or `form` with the names of its
`fields`. What a model wrote there is lost. Who says no, or nothing, has not called the tool.
"""

from __future__ import annotations

import base64
import re
from fnmatch import translate
from typing import Annotated, Any, Literal

from msgspec import Meta

from supervisor.plugins.contract import Plugin, PluginOptions, Rejection, ToolCall
from supervisor.plugins.questions import (
    ConfirmationInput,
    FileInput,
    FormInput,
    MultiselectInput,
    QuestionInput,
    SecretInput,
    SelectInput,
    TextInput,
    UserQuestion,
)

Names = Annotated[tuple[str, ...], Meta(max_length=100)]


class Asked(PluginOptions, frozen=True, kw_only=True):
    """One argument of some tools: `server:tool`, where `*` stands for anything."""

    tools: Names
    argument: str
    message: Annotated[str, Meta(min_length=1, max_length=1000)]
    kind: Literal["confirmation", "text", "secret", "select", "multiselect", "file", "form"] = "text"
    format: Literal["", "email", "uri", "date", "date-time"] = ""
    choices: Names = ()
    fields: Names = ()

    def __post_init__(self) -> None:
        """Refuse what nobody can be asked. The message must not have a value."""
        if self.kind.endswith("select") and not self.choices:
            raise ValueError("a select needs choices")
        if self.kind == "form" and not self.fields:
            raise ValueError("a form needs fields")

    def question(self, number: int) -> UserQuestion[Any]:
        return UserQuestion(f"question-{number}", self.message, self._input())

    def _input(self) -> QuestionInput[Any]:
        match self.kind:
            case "confirmation":
                return ConfirmationInput(title=self.argument)
            case "secret":
                return SecretInput(title=self.argument)
            case "select":
                return SelectInput(title=self.argument, choices=self.choices)
            case "multiselect":
                return MultiselectInput(title=self.argument, choices=self.choices)
            case "file":
                return FileInput(title=self.argument)
            case "form":
                return FormInput(fields={name: TextInput() for name in self.fields})
        return TextInput(title=self.argument, format=self.format)


class PeopleOptions(PluginOptions, frozen=True, kw_only=True):
    """What is asked, in this order."""

    ask: Annotated[tuple[Asked, ...], Meta(max_length=100)] = ()


class People(Plugin[PeopleOptions]):
    """Asks people. It guards: a call that it cannot ask about is not made."""

    options_type = PeopleOptions
    guards = True

    def __init__(self, options: PeopleOptions) -> None:
        super().__init__(options)
        self._asked = [
            (each.argument, re.compile("|".join(map(translate, each.tools))), each.question(number))
            for number, each in enumerate(options.ask, 1)
        ]

    async def before_call(self, call: ToolCall) -> UserQuestion[Any] | Rejection | dict[str, Any] | None:
        """Return the first question without an answer. The daemon asks it, and calls this again."""
        filled: dict[str, Any] = {}
        for argument, paths, question in self._asked:
            if not paths.match(call.path):
                continue
            answer = call.answer(question)
            if answer is None:
                return question
            if not answer.accepted or answer.value is False:
                return Rejection("the user did not fill in what is asked for this tool")
            filled[argument] = _as_argument(answer.value)
        return {**call.decode_arguments(), **filled} if filled else None


def _as_argument(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
