"""What all pages of the dashboard share: their frame, what they ask, who may do what, and the token of their forms."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Final

import msgspec
from quart import Response, abort, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from actors.errors import SupervisorError
from supervisor.front.pages.api import View
from supervisor.front.pages.app import error_body, page_of
from supervisor.front.pages.bodies import read_fields
from supervisor.front.pages.rights import REQUESTER
from supervisor.front.ui.rendering import html
from supervisor.identity.people import Role
from supervisor.identity.requester import ANYBODY

PLACES: Final[tuple[tuple[str, str, Role], ...]] = (
    ("/ui", "Overview", "member"),
    ("/ui/servers", "Servers", "auditor"),
    ("/ui/tools", "Tools", "auditor"),
    ("/ui/calls", "Calls", "member"),
    ("/ui/usage", "Usage", "member"),
    ("/ui/changes", "Changes", "auditor"),
    ("/ui/people", "People", "auditor"),
    ("/questions", "Questions", "member"),
)
"""The pages in the bar, and the least role that sees each."""
ORDERS: Final = {
    "restart": "Restart",
    "wake": "Wake",
    "sleep": "Sleep",
    "refresh": "Refresh",
    "enable": "Enable",
    "disable": "Disable",
    "login": "Log in",
}
MAX_TYPED: Final = 256 * 1024
"""Of one field of a form."""

Pairs = Mapping[str, str]
Page = Callable[..., Awaitable[Any]]


class Frame:
    """Makes pages of one application. `pages` under `/api` are asked as the person who asks for the page."""

    def __init__(self, view: View, app: QuartTrio) -> None:
        self.view = view
        self._app = app

    async def ask(self, endpoint: str, query: Pairs | None = None, **path: str) -> Any:
        """Return what a page under `/api` says to the same person. Raises what that does."""
        return msgspec.json.decode(await (await page_of(self._app, endpoint, query, **path)).get_data())

    async def page(self, template: str, title: str, *, code: int = 200, **values: Any) -> Response:
        """Return a page: `values` are what its template needs beside what every page has."""
        view, person, stranger = self.view, REQUESTER.get().person, REQUESTER.get() is ANYBODY
        common = {
            "here": request.path,
            "json": "",
            "names": ORDERS,
            "now": view.clock(),
            "orders": self.may_order,
            "places": [(path, name) for path, name, role in PLACES if person.may(role) and not stranger],
            "questions": 0 if stranger else len(view.elicitations.of(view.principal)),
            "title": title,
            "token": self.token,
            "urgent": 0,
            "user": person.user,
            "version": view.version,
        }
        return await html(template, code, **{**common, **values})

    async def carry_out(self, act: Callable[[], Awaitable[Any]], back: str) -> Response:
        """Do what was ordered, and say what became of it: as JSON to the script, else as a page with a way `back`."""
        code, url = 200, ""
        try:
            answer = await act()
            said, url = answer.get("message") or answer.get("state") or "It is done.", answer.get("url", "")
        except SupervisorError as error:
            (code, _), said = error_body(error), error.message
        if request.accept_mimetypes.best == "application/json":
            body = msgspec.json.encode({"message": said, "url": url})
            return Response(body, status=code, content_type="application/json")
        title = "Done" if code == 200 else "Not done"
        return await self.page("word", title, what=said, link=url if url.startswith("http") else back, code=code)

    def with_errors(self, page: Page) -> Page:
        """Return a page that says itself what is wrong, as pages do."""

        @wraps(page)
        async def show(**path: str) -> Any:
            try:
                return await page(**path)
            except SupervisorError as error:
                code, what = error_body(error)[0], error.message
            except HTTPException as error:
                code, what = error.code or 500, error.description or error.name
            return await self.page("word", "That did not work", what=what, link="/ui", code=code)

        return show

    async def form(self) -> dict[str, str]:
        """Return what was filled in; 400 for a form that is none of ours."""
        form = await read_fields(self.view.bench)
        self.check_token(form.get("token", ""))
        return {name: value[:MAX_TYPED] for name, value in form.items()}

    def check_token(self, given: str = "", *_: str) -> None:
        """Answer 400 to a form without the token of this page."""
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            abort(400, "this form is not of a page that was opened here: load the page again")

    @property
    def token(self) -> str:
        """What a form has to bring along: the page of another site cannot know it."""
        credential = REQUESTER.get().credential
        return hmac.digest(self.view.key, f"form of {credential}".encode(), "sha256").hex()

    @property
    def may_order(self) -> bool:
        return REQUESTER.get().person.may("admin")

    @property
    def may_approve(self) -> bool:
        """Whether somebody has shown that they are an admin: on this machine anybody can load a page."""
        return REQUESTER.get().is_proven and self.may_order
