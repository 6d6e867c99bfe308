"""`questions`: what servers ask of you, and tools that wait for your yes; with an ID, answer it in the terminal."""

from __future__ import annotations

import time
from typing import Any

import click
import msgspec

from actors.protocol.asking.forms import Form, FormField
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
from supervisor.commands.questions import fill_in
from supervisor.metatools.texts import clean


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
        _show(asked, as_json=as_json)
        return
    wanted = [each for each in asked if each["id"].startswith(id_)]
    if len(wanted) != 1:
        what = "no question waits" if not wanted else f"{len(wanted)} questions wait"
        raise CommandFailed(f"{what} whose ID begins with {id_[:60]!r}: mcpvisor questions lists all")
    (question,) = wanted
    answer = {"action": "decline"} if decline else _ask(question)
    perform(url, operations.ANSWER_QUESTION, body=answer, question=question["id"])
    say(_say_done(question, agreed=answer["action"] != "decline"))


def _say_done(question: dict[str, Any], *, agreed: bool) -> str:
    """Return what becomes of the call."""
    following = "; tell the model to go on: it repeats the call" if question.get("repeats") else "; the call goes on"
    if question.get("confirms"):
        return f"you said yes{following}" if agreed else "you said no: the tool does not run"
    who = "the plugin" if question.get("plugin") else "the server"
    return (f"{who} has your answer" if agreed else f"{who} was told that you said no") + following


def _ask(question: dict[str, Any]) -> dict[str, Any]:
    """Return what somebody types. Raises `CommandFailed` where that ends before an answer."""
    say(clean(question["message"]))
    if question.get("url"):
        raise CommandFailed(f"it is answered in a browser: {clean(question['page'])}")
    form = Form(question["message"], msgspec.convert(question["fields"], tuple[FormField, ...]))
    try:
        answer = fill_in(form)
    except EOFError:
        raise CommandFailed("nothing was answered: the question still waits") from None
    if answer["action"] == "cancel":
        raise CommandFailed("nothing was answered: the question still waits")
    return answer


def _show(asked: list[dict[str, Any]], *, as_json: bool) -> None:
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
