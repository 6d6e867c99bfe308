"""Questions that a call asks before it goes on, answered by the person at the terminal.

They are shown on stderr, so that stdout has the result alone, and answered on stdin. What is not answered is no yes: an
empty line is the default of a field, and a no to a question of yes or no; the end of the input cancels.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Mapping
from typing import Any, Final

import click
import msgspec

from actors.protocol.asking import forms
from actors.protocol.asking.forms import Form, FormField
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.commands.common import say
from supervisor.metatools.texts import clean

CAPABILITIES: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}}
"""What can be asked here (MCP 2026-07-28, client/elicitation)."""
MAX_TRIES: Final = 3
"""For a form whose fields are filled in wrongly."""
_YES: Final = frozenset({"y", "yes"})
_CANCELLED: Final[dict[str, Any]] = {"action": "cancel"}
_DECLINED: Final[dict[str, Any]] = {"action": "decline"}


def is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def answers(requests: Mapping[str, Any]) -> dict[str, Any]:
    """Ask all questions of an incomplete result and return the answers by their keys (`ElicitResult`)."""
    return {key: _answer(request.get("params", {})) for key, request in requests.items()}


def _answer(params: Any) -> dict[str, Any]:
    form = forms.read(msgspec.Raw(encode(params)))
    if form is None:
        say("The server asks with a form that cannot be shown here; it gets no answer.")
        return _CANCELLED
    say(clean(form.message))
    try:
        if form.url:
            say(f"  {clean(form.url)}")
            done = _agrees("Open this address, do there what it asks for, then say y.")
            return {"action": "accept"} if done else _DECLINED
        return fill_in(form)
    except EOFError:
        say("")
        return _CANCELLED


def fill_in(form: Form) -> dict[str, Any]:
    """Return what somebody answers to a form. Raises `EOFError` at the end of the input."""
    if form.wants_a_yes:  # what need not be said beside it is not asked for here
        field = form.fields[0]
        return {"action": "accept", "content": {field.name: True}} if _agrees(_label(field)) else _DECLINED
    content: dict[str, Any] = {}
    asked = list(form.fields)
    for _ in range(MAX_TRIES):
        for field in asked:
            content.pop(field.name, None)
            if (value := _value(field)) is not None:
                content[field.name] = value
        problems = forms.wrong(form, content)
        if not problems:
            return {"action": "accept", "content": content} if _agrees("Send this?") else _DECLINED
        asked = [field for field in form.fields if field.name in problems]
        say("\n".join(f"{_label(field)}: {problems[field.name]}" for field in asked))
    return _CANCELLED


def _value(field: FormField) -> Any:
    """Ask for one field; None leaves it out. What cannot be read as its kind is a text, which `forms.wrong` refuses."""
    if field.description:
        say(clean(field.description))
    for number, choice in enumerate(field.choices, 1):
        say(f"  {number}  {clean(choice.title or choice.const)}")
    default = "" if field.default is None or field.secret else f" [{clean(encode(field.default).decode())}]"
    line = _line(f"{_label(field)}{default}: ", secret=field.secret)
    if not line:
        return field.default
    match field.kind:
        case "text" | "file":
            return line
        case "boolean":
            return line.lower() in _YES
        case "select":
            return _choice(field, line)
        case "multiselect":
            return [_choice(field, part.strip()) for part in line.split(",")]
    return json.read_or(json.VALUE, line, line)


def _choice(field: FormField, line: str) -> str:
    """Return the choice that is named by its number or by itself."""
    if line.isdecimal() and 1 <= int(line) <= len(field.choices):
        return field.choices[int(line) - 1].const
    return line


def _agrees(question: str) -> bool:
    return _line(f"{question} [y/N] ").lower() in _YES


def _line(prompt: str, *, secret: bool = False) -> str:
    """Return one line of the terminal. Raises `EOFError` at the end of the input."""
    click.echo(prompt, nl=False, err=True)
    if secret:
        return getpass.getpass("", stream=sys.stderr)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.strip()


def _label(field: FormField) -> str:
    return " ".join(clean(field.title or field.name).split())
