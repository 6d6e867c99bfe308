"""Questions of servers that a person can answer here: for browsers (`/questions`), and for programs.

- A question is found by its id, which nobody can guess, and answered once.
- A page of a foreign origin cannot answer: a browser sends `Origin` with every POST, and the guard refuses it.
- What is typed goes to the server that asked. It is neither logged nor kept.
- What a server wrote is text here, never markup: the templates escape all of it, and the pages load and run nothing.
- What was typed is shown again only if something in the form was wrong, and never a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlsplit

import jinja2
import msgspec
import trio
from quart import Response, abort, request
from quart_trio import QuartTrio

from actors.errors import InvalidArguments
from actors.protocol.asking.forms import Form, FormField
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response
from supervisor.front.pages.requests import Unreadable, read_form
from supervisor.host.loop.workbench import beside
from supervisor.metatools.texts import clean
from supervisor.service.asking.elicitations import PAGES, Action, Elicitation

API: Final = "/api/questions"
GONE: Final = "Nobody waits for this answer any more: it was given, its time is over, or its call has ended."
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "frame-ancestors 'none'",
    "Cache-Control": "no-store",
    # With `no-referrer` a browser says `Origin: null` of a form, even to the page's own origin (Fetch standard, "append
    # a request Origin header"), and the guard would refuse it.
    "Referrer-Policy": "same-origin",
}
_PREFIX: Final = "field."
"""Of the names of inputs, so that none is that of a button."""
_FORMATS: Final = {"email": "email", "uri": "url", "date": "date"}
"""The type of an input for a format of JSON Schema. There is none for `date-time`: a `datetime-local` has no zone."""

_TEMPLATES: Final = {
    name: files(__package__).joinpath(f"{name}.html").read_text(encoding="utf-8")
    for name in ("page", "word", "overview", "question")
}
"""Read at the start: later there may be no descriptor for it."""


class PersonsAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer of a program: what the user does, and for `accept` what is in the form."""

    action: Action
    content: dict[str, Any] = {}


_answer = msgspec.json.Decoder(PersonsAnswer)
_LINE_END: Final = re.compile(r"\r\n?|\n")


def add_question_routes(view: View, app: QuartTrio) -> None:
    pages = QuestionPages(view)
    app.add_url_rule(PAGES, "questions", pages.overview)
    app.add_url_rule(f"{PAGES}/<question>", "question", pages.question)
    app.add_url_rule(f"{PAGES}/<question>", "answer_question", pages.answer_form, methods=["POST"])
    app.add_url_rule(API, "api_questions", pages.list_questions)
    app.add_url_rule(f"{API}/<question>", "api_question", pages.show_question)
    app.add_url_rule(f"{API}/<question>", "api_answer_question", pages.answer, methods=["POST"])


class QuestionPages:
    """Answers for the open questions of one principal."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._elicitations = view.elicitations

    async def list_questions(self) -> Response:
        """Show all questions that wait.

        Of each: `id`, `server`, `plugin` if one asks, `about`, `kind`, `message`, `fields` or `url`, `asked_at`,
        `expires_in_s` and `page`.
        """
        rows: list[bytes] = []
        for each in self._elicitations.of(self._view.principal):
            rows.append(msgspec.json.encode(self._row(each)))
            await trio.lowlevel.checkpoint()  # hundreds of large forms at once would hold up everybody
        return json_response({"questions": [msgspec.Raw(row) for row in rows]})

    async def show_question(self, question: str) -> Response:
        """Show one question; 404 if nobody waits for its answer any more."""
        return json_response(self._row(self._find(question) or abort(404, GONE)))

    async def answer(self, question: str) -> Response:
        """Answer a question: `{"action": "accept", "content": {...}}`, or `decline`, or `cancel`.

        What is wrong with an answer is in `error.data.fields`.
        """
        body = await request.get_data()
        elicitation = self._find(question) or abort(404, GONE)
        given = _read(body)
        self._elicitations.answer(elicitation, given.action, given.content)
        return json_response({"id": question, "action": given.action})

    async def overview(self) -> Response:
        """Show a page with the questions that wait for a person."""
        waiting = [(each, f"{PAGES}/{each.id}") for each in self._elicitations.of(self._view.principal)]
        return _html(_overview_page(waiting, trio.current_time()))

    async def question(self, question: str) -> Response:
        """Show a page with the form of one question."""
        elicitation = self._find(question)
        if elicitation is None:
            return _word("No question", GONE, 404)
        return _html(_question_page(elicitation, _left_s(elicitation), {}, {}))

    async def answer_form(self, question: str) -> Response:
        """Take the form, filled in, and show a page."""
        body = await request.body
        if self._find(question) is None:
            return _word("No question", GONE, 404)
        try:
            typed, files = await beside(partial(read_form, request.content_type or "", body))
        except Unreadable as error:
            return _word("Not an answer", str(error), 400)
        elicitation = self._find(question)  # somebody else may have answered meanwhile
        if elicitation is None:
            return _word("No question", GONE, 404)
        action: Action = "accept" if typed["action"] == ["accept"] else "decline"
        content = _content(elicitation.form, typed, files)
        try:
            self._elicitations.answer(elicitation, action, content)
        except InvalidArguments as error:
            wrong: dict[str, str] = dict(error.details or {}).get("fields", {})
            return _html(_question_page(elicitation, _left_s(elicitation), content, wrong), 400)
        who = "The plugin" if elicitation.plugin else "The server"
        text = f"{who} has your answer" if action == "accept" else f"{who} was told that you said no"
        return _word("Thank you", f"{text}. You can close this window.")

    def _find(self, question: str) -> Elicitation | None:
        return self._elicitations.find(question, self._view.principal)

    def _row(self, each: Elicitation) -> dict[str, Any]:
        form = each.form
        asked = {"url": form.url} if form.url else {"fields": form.fields}
        return {
            "id": each.id,
            "server": each.server,
            "plugin": each.plugin,
            "about": each.about,
            "kind": form.kind,
            "message": form.message,
            **asked,
            "asked_at": self._view.now().unix_of(each.asked_at),
            "expires_in_s": round(_left_s(each), 1),
            "page": self._elicitations.address(each.id),
        }


def _read(body: str | bytes) -> PersonsAnswer:
    try:
        return json.read(_answer, body)
    except json.UnreadableJson as error:
        said = str(error) if isinstance(error, json.OtherShape) else "it is no JSON"
        text = f'the body has to be like {{"action": "accept", "content": {{...}}}}: {said[:200]}'
        raise InvalidArguments(text) from None


def _content(form: Form, typed: Mapping[str, list[str]], files: Mapping[str, str]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for field in form.fields:
        name = _PREFIX + _as_sent(field.name)
        if field.kind == "file":
            if files.get(name):
                content[field.name] = files[name]
        elif values := [value for value in typed.get(name, ()) if value]:
            content[field.name] = values if field.kind == "multiselect" else _value(field, values[0])
    return content


def _as_sent(name: str) -> str:
    """Return the name of an input as it arrives (WHATWG HTML, "Multipart form data"; werkzeug)."""
    return _LINE_END.sub("%0D%0A", name).replace("%22", '"')


def _value(field: FormField, text: str) -> Any:
    """Return what was typed into a field as JSON has it; the text itself if it is none."""
    if field.kind in ("text", "select"):
        return text
    return json.read_or(json.VALUE, text, text)


def _left_s(elicitation: Elicitation) -> float:
    return max(0.0, elicitation.expires - trio.current_time())


def _word(title: str, text: str, status: int = 200) -> Response:
    return _html(_word_page(title, text), status)


def _html(body: str, status: int = 200) -> Response:
    return Response(body, status=status, content_type="text/html; charset=utf-8", headers=_HEADERS)


def _word_page(title: str, text: str) -> str:
    return _templates().get_template("word").render(title=title, text=text)


def _overview_page(waiting: Sequence[tuple[Elicitation, str]], now: float) -> str:
    return _templates().get_template("overview").render(title="Questions", waiting=waiting, now=now)


def _question_page(asked: Elicitation, left_s: float, content: Mapping[str, Any], wrong: Mapping[str, str]) -> str:
    about = {"asked": asked, "left_s": left_s, "content": content, "wrong": wrong, "prefix": _PREFIX}
    return _templates().get_template("question").render(title="A question", **about)


@cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(autoescape=True, loader=jinja2.DictLoader(_TEMPLATES), undefined=jinja2.StrictUndefined)
    made.filters |= {
        "clean": clean,
        "choices": _choices,
        "chosen": _selection,
        "host": _host,
        "input": _input,
        "text": _text,
    }
    return made


def _choices(field: FormField) -> list[tuple[str, str]]:
    if field.kind == "boolean":
        return [("true", "yes"), ("false", "no")]
    return [(choice.const, clean(choice.title or choice.const)) for choice in field.choices]


def _selection(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _host(url: str) -> str:
    """Return where an address leads, in letters that cannot be taken for others."""
    host = urlsplit(url).hostname or ""
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return quote(host)


def _input(field: FormField) -> str:
    return "number" if field.kind in ("number", "integer") else _FORMATS.get(field.format, "text")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()
