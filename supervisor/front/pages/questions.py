"""What people are asked, for programs, and what they have said yes to for longer than one call (`/api/consents`).

- `supervisor/front/ui/questions.py` has the pages of questions for browsers.
- A question is found by its id, which nobody can guess, and answered once.
- What is filled in goes to whoever asked. It is neither logged nor kept.
- A yes is shown to whose it is, and to an admin.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
import trio
from quart import abort

from supervisor import operations
from supervisor.front.pages.performing import describe, performs
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.view import View
from supervisor.identity.people import user_of
from supervisor.service.asking.confirmations import Consent
from supervisor.service.asking.elicitations import Action, Elicitation

GONE: Final = "Nobody waits for this answer any more: it was given, its time is over, or its call has ended."


class PersonsAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer of a program: what the user does, and for `accept` what is in the form."""

    HAS: ClassVar[str] = 'it is like {"action": "accept", "content": {...}}, or declines or cancels'
    action: Action
    content: dict[str, Any] = {}


@performs(operations.QUESTIONS)
async def questions(view: View) -> Any:
    """Show all questions that wait.

    Of each: `id`, `server`, `plugin` if one asks, `client` that made the call, `confirms` (whether a tool may run),
    `repeats` (the client has to make its call again then), `about`, `kind`, `message`, `fields` or `url`,
    `asked_at`, `expires_in_s` and `page`.
    """
    rows: list[bytes] = []
    for each in view.elicitations.of(view.principal):
        rows.append(msgspec.json.encode(_row(view, each)))
        await trio.lowlevel.checkpoint()  # hundreds of large forms at once would hold up everybody
    return {"questions": [msgspec.Raw(row) for row in rows]}


@performs(operations.QUESTION)
async def question(view: View, question: str) -> Any:
    """Show one question; 404 if nobody waits for its answer any more."""
    return _row(view, _find(view, question) or abort(404, GONE))


@performs(operations.ANSWER_QUESTION)
async def answer_question(view: View, body: PersonsAnswer, question: str) -> Any:
    """Answer a question: `{"action": "accept", "content": {...}}`, or `decline`, or `cancel`.

    What is wrong with an answer is in `error.data.fields`.
    """
    elicitation = _find(view, question) or abort(404, GONE)
    view.elicitations.answer(elicitation, body.action, body.content)
    return {"id": question, "action": body.action}


def _find(view: View, question: str) -> Elicitation | None:
    return view.elicitations.find(question, view.principal)


def _row(view: View, each: Elicitation) -> dict[str, Any]:
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
        "asked_at": view.now().unix_of(each.asked_at),
        "expires_in_s": round(max(0.0, each.expires - trio.current_time()), 1),
        "page": view.elicitations.address(each.id),
    }


_NO_CONSENT = "there is no such yes; mcpvisor consents lists those that there are"


@performs(operations.CONSENTS)
async def consents(view: View) -> Any:
    """Show which tools run without asking again: whose yes it is, for which client (empty: any), since when."""
    return {"consents": [_consent_row(each) for each in _own_consents(view)]}


@performs(operations.REVOKE_CONSENT)
async def revoke_consent(view: View, id_: str) -> Any:
    """Take a yes back: the tool asks again."""
    consent = next((each for each in _own_consents(view) if each.id == id_), None) or abort(404, _NO_CONSENT)
    describe(f"{consent.server}:{consent.tool}", consent.id)
    view.consents.revoke(consent)
    return {"revoked": _consent_row(consent)}


def _own_consents(view: View) -> list[Consent]:
    return view.consents.of(None if REQUESTER.get().person.may("admin") else view.principal)


def _consent_row(consent: Consent) -> dict[str, Any]:
    return {
        "id": consent.id,
        "user": user_of(consent.principal),
        "server": consent.server,
        "tool": consent.tool,
        "client": consent.client,
        "given_at": consent.given_at,
    }
