"""The pages of questions that a person can answer (`/questions`), which work without a script.

- A question is found by its id, which nobody can guess, and answered once.
- A page of a foreign origin cannot answer: a browser sends `Origin` with every POST, and the guard refuses it.
- What is typed goes to whoever asked. It is neither logged nor kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from quart import Response, request

from actors.catalogue.metadata import judge
from actors.catalogue.names import tool_path
from actors.errors import InvalidArguments
from supervisor.front.pages import question_form
from supervisor.front.pages.questions import GONE
from supervisor.front.pages.requests import REQUESTER, Unreadable, read_form
from supervisor.front.ui import trying
from supervisor.front.ui.frame import Frame, Page
from supervisor.metatools.questions import LASTING, REMEMBER, RUN
from supervisor.service.asking.elicitations import PAGES, Action, Elicitation

_MAX_DESCRIPTION_CHARS: Final = 4000


class WaitingQuestion(msgspec.Struct, frozen=True):
    """A question and its moments, in unix seconds."""

    asked: Elicitation
    asked_at: float
    expires: float


class AskedTool(msgspec.Struct, frozen=True):
    """What whoever is asked sees of the tool that is called. `path` is the one that clients use."""

    path: str
    safety: str
    description: str


class QuestionForms(Frame):
    """Shows the open questions of one principal, and takes the answers."""

    def pages(self) -> Mapping[str, Page]:
        return {
            "GET /questions": self.overview,
            "GET /questions/<question>": self.question,
            "POST /questions/<question>": self.answer,
        }

    async def overview(self) -> Response:
        """Show a page with the questions that wait for a person."""
        waiting = [self._with_times(each) for each in self.view.elicitations.of(self.view.principal)]
        return await self.page("questions", "Questions", waiting=waiting, json="/api/questions")

    async def question(self, question: str) -> Response:
        """Show a page with the form of one question."""
        asked = self._find(question)
        return await (self._no_question() if asked is None else self._form(asked, {}, {}))

    async def answer(self, question: str) -> Response:
        """Take the form, filled in, and show what becomes of the call."""
        body = await request.body
        if self._find(question) is None:
            return await self._no_question()
        try:
            typed, files = await self.view.bench.run(len(body), read_form, request.content_type or "", body)
        except Unreadable as error:
            return await self.page("word", "Not an answer", what=str(error), link=f"{PAGES}/{question}", code=400)
        asked = self._find(question)  # somebody else may have answered meanwhile
        if asked is None:
            return await self._no_question()
        action: Action = "accept" if typed["action"] == ["accept"] else "decline"
        content = question_form.content_of(asked.form, typed, files)
        try:
            self.view.elicitations.answer(asked, action, content)
        except InvalidArguments as error:
            return await self._form(asked, content, dict(error.details or {}).get("fields", {}), 400)
        agreed = action == "accept" and (content.get(RUN) is True or not asked.confirms)
        lasts = agreed and asked.confirms and content.get(REMEMBER) in LASTING
        return await self.page("answered", "Answered", asked=asked, agreed=agreed, lasts=lasts)

    async def _form(
        self, asked: Elicitation, content: Mapping[str, Any], wrong: Mapping[str, str], code: int = 200
    ) -> Response:
        return await self.page(
            "question",
            "A question",
            code=code,
            asked=asked,
            waiting=self._with_times(asked),
            tool=await self._tool(asked),
            links=REQUESTER.get().person.may("auditor"),
            inputs=question_form.inputs(asked.form, content, wrong),
            host=question_form.host_of(asked.form.url),
            wrong=wrong,
        )

    async def _no_question(self) -> Response:
        return await self.page("word", "No question", what=GONE, link=PAGES, code=404)

    async def _tool(self, asked: Elicitation) -> AskedTool | None:
        """Return the tool that is called, if whoever asks for the page sees it."""
        seen = (await self.view.seen_by(REQUESTER.get().person)).catalogue
        entry = seen.entries.get(asked.server)
        tool = entry.by_own_name.get(asked.tool) if entry is not None else None
        if tool is None:
            return None
        described = trying.make_visible((tool.description or "")[:_MAX_DESCRIPTION_CHARS])
        return AskedTool(tool_path(asked.server, tool.name), judge(tool).safety, described)

    def _find(self, question: str) -> Elicitation | None:
        return self.view.elicitations.find(question, self.view.principal)

    def _with_times(self, asked: Elicitation) -> WaitingQuestion:
        now = self.view.now()
        return WaitingQuestion(asked, now.unix_of(asked.asked_at), now.unix_of(asked.expires))
