"""Questions that somebody answers at the terminal: those of a call, before it goes on, and with the command `questions`
those that wait for them.

They are shown on stderr, so that stdout has the result alone, and answered on stdin. What is not answered is no yes: an
empty line is the default of a field, and a no to a question of yes or no; the end of the input cancels.
"""

from __future__ import annotations

import getpass
import sys
import time
from collections.abc import Mapping
from typing import Any, Final

import click
import msgspec

from actors.protocol.asking import forms
from actors.protocol.asking.forms import Form, FormField
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor import operations
from supervisor.commands.common import (
    console,
    daemon_options,
    duration,
    node_option,
    perform,
    plain,
    print_json,
    print_table,
    say,
    table,
)
from supervisor.commands.outcomes import CommandFailed
from supervisor.metatools.texts import clean

CAPABILITIES: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}}
"""What can be asked here (MCP 2026-07-28, client/elicitation)."""
_MAX_TRIES: Final = 3
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
        return _fill_in(form)
    except EOFError:
        say("")
        return _CANCELLED


def _fill_in(form: Form) -> dict[str, Any]:
    """Return what somebody answers to a form. Raises `EOFError` at the end of the input."""
    if form.wants_a_yes:  # what need not be said beside it is not asked for here
        field = form.fields[0]
        return {"action": "accept", "content": {field.name: True}} if _agrees(_label(field)) else _DECLINED
    content: dict[str, Any] = {}
    asked = list(form.fields)
    for _ in range(_MAX_TRIES):
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


@click.command()
@click.argument("id_", required=False, metavar="[ID]")
@click.option("--decline", is_flag=True, help="Say no, without being asked.")
@node_option
@daemon_options
def questions(*, id_: str | None, decline: bool, as_json: bool, url: str) -> None:
    """Show the questions that wait for you; with an ID, answer one here.

    \b
    mcpvisor questions
    mcpvisor questions 5f0c --decline
    """
    asked = perform(url, operations.QUESTIONS)["questions"]
    if id_ is None:
        _show_questions(asked, as_json=as_json)
        return
    wanted = [each for each in asked if each["id"].startswith(id_)]
    if len(wanted) != 1:
        what = "no question waits" if not wanted else f"{len(wanted)} questions wait"
        raise CommandFailed(f"{what} whose ID begins with {id_[:60]!r}: mcpvisor questions lists all")
    (question,) = wanted
    answer = {"action": "decline"} if decline else _ask_person(question)
    perform(url, operations.ANSWER_QUESTION, body=answer, question=question["id"])
    say(_say_done(question, agreed=answer["action"] != "decline"))


def _say_done(question: dict[str, Any], *, agreed: bool) -> str:
    """Return what becomes of the call."""
    following = "; tell the model to go on: it repeats the call" if question.get("repeats") else "; the call goes on"
    if question.get("confirms"):
        return f"you said yes{following}" if agreed else "you said no: the tool does not run"
    who = "the plugin" if question.get("plugin") else "the server"
    return (f"{who} has your answer" if agreed else f"{who} was told that you said no") + following


def _ask_person(question: dict[str, Any]) -> dict[str, Any]:
    """Return what somebody types. Raises `CommandFailed` where that ends before an answer."""
    say(clean(question["message"]))
    if question.get("url"):
        raise CommandFailed(f"it is answered in a browser: {clean(question['page'])}")
    form = Form(question["message"], msgspec.convert(question["fields"], tuple[FormField, ...]))
    try:
        answer = _fill_in(form)
    except EOFError:
        raise CommandFailed("nothing was answered: the question still waits") from None
    if answer["action"] == "cancel":
        raise CommandFailed("nothing was answered: the question still waits")
    return answer


def _show_questions(asked: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json({"questions": asked})
        return
    if not asked:
        say("Nobody asks anything.")
        return
    rows, now = table("ID", "ASKED BY", "ABOUT", "KIND", "SINCE", "LEFT", "QUESTION"), time.time()
    for each in asked:
        by = f"plugin {each['plugin']}" if each.get("plugin") else each["server"]
        if each.get("confirms"):  # the daemon asks, before a client may do it
            by = each.get("client") or "a client"
        left, since = duration(each["expires_in_s"]), duration(now - each["asked_at"])
        rows.add_row(
            each["id"][:8],
            *map(plain, (by, each["about"], each["kind"])),
            since,
            left,
            plain(each["message"]),
        )
    print_table(console(), rows)
    say("Answer one with: mcpvisor questions ID")
