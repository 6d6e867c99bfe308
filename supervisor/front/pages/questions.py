"""Questions that a person can answer, for programs; `supervisor/front/ui/questions.py` has the pages for browsers.

- A question is found by its id, which nobody can guess, and answered once.
- What is filled in goes to whoever asked. It is neither logged nor kept.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import trio
from quart import Response, abort
from quart_trio import QuartTrio

from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response
from supervisor.front.pages.bodies import read_json
from supervisor.service.asking.elicitations import Action, Elicitation

API: Final = "/api/questions"
GONE: Final = "Nobody waits for this answer any more: it was given, its time is over, or its call has ended."


class PersonsAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer of a program: what the user does, and for `accept` what is in the form."""

    action: Action
    content: dict[str, Any] = {}


_answer = msgspec.json.Decoder(PersonsAnswer)


def add_question_routes(view: View, app: QuartTrio) -> None:
    pages = QuestionPages(view)
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

        Of each: `id`, `server`, `plugin` if one asks, `client` that made the call, `confirms` (whether a tool may run),
        `repeats` (the client has to make its call again then), `about`, `kind`, `message`, `fields` or `url`,
        `asked_at`, `expires_in_s` and `page`.
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
        given = await read_json(
            self._view.bench, _answer, 'it is like {"action": "accept", "content": {...}}, or declines or cancels'
        )
        elicitation = self._find(question) or abort(404, GONE)
        self._elicitations.answer(elicitation, given.action, given.content)
        return json_response({"id": question, "action": given.action})

    def _find(self, question: str) -> Elicitation | None:
        return self._elicitations.find(question, self._view.principal)

    def _row(self, each: Elicitation) -> dict[str, Any]:
        form = each.form
        asked = {"url": form.url} if form.url else {"fields": form.fields}
        return {
            "id": each.id,
            "server": each.server,
            "plugin": each.plugin,
            "client": each.client,
            "confirms": each.confirms,
            "repeats": each.repeats,
            "about": each.about,
            "kind": form.kind,
            "message": form.message,
            **asked,
            "asked_at": self._view.now().unix_of(each.asked_at),
            "expires_in_s": round(max(0.0, each.expires - trio.current_time()), 1),
            "page": self._elicitations.address(each.id),
        }
