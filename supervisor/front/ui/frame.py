"""What all pages of the dashboard share: templates, headers, their frame, who may do what, and the token of their
forms.

What a server wrote is text here: everything is escaped, nothing of it is markup, an address or a style. A page loads
its own style and scripts alone, has none in its text, and a script cannot make markup of a text either (Trusted Types).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, wraps
from importlib.resources import files
from typing import Any, Final

import jinja2
import msgspec
from quart import Response, abort, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from actors.errors import SupervisorError
from supervisor.front.pages.app import error_body
from supervisor.front.pages.performing import Perform, add_page
from supervisor.front.pages.requests import REQUESTER, read_fields
from supervisor.front.pages.view import View
from supervisor.front.ui import plots, words
from supervisor.host.workbench import beside
from supervisor.identity.requester import ANYBODY
from supervisor.metatools.texts import clean
from supervisor.operations import DASHBOARD, Operation, Role
from supervisor.usage.records import UNKNOWN

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cache-Control": "no-store",
    # With `no-referrer` a browser says `Origin: null` of a form, even to the page's own origin.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
ASSETS: Final = {
    "icon.svg": "image/svg+xml",
    "ui.css": "text/css; charset=utf-8",
    "ui.js": "text/javascript; charset=utf-8",
}
_YEAR_S: Final = 365 * 86_400
_ROOT: Final = files(__package__)
_TEMPLATES: Final = {
    each.name.removesuffix(".html"): each.read_text(encoding="utf-8")
    for each in _ROOT.joinpath("templates").iterdir()
    if each.name.endswith(".html")
}
_BODIES: Final = {name: _ROOT.joinpath("static", name).read_bytes() for name in ASSETS}
"""Read at the start: later there may be no descriptor for it."""
_MARK: Final = hashlib.sha256(b"".join(_BODIES.values())).hexdigest()[:16]
"""In the addresses of style and scripts: another text has another one, so that they can be kept for ever."""


async def _html(template: str, code: int = 200, **values: Any) -> Response:
    """Return a page. `values` are what the template needs; a name that it does not get is a bug. A checkpoint."""
    body = await beside(lambda: _environment().get_template(template).render(**values))
    return Response(body, status=code, content_type="text/html; charset=utf-8", headers=_HEADERS)


def lead_to(path: str) -> Response:
    """Return an answer that leads a browser elsewhere. Without a text, Quart would want asyncio to send it."""
    return Response("", status=303, headers={**_HEADERS, "Location": path})


def asset(name: str) -> Response:
    headers = {"Cache-Control": f"public, max-age={_YEAR_S}, immutable", "Cross-Origin-Resource-Policy": "same-origin"}
    return Response(_BODIES[name], content_type=ASSETS[name], headers=headers)


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        autoescape=True, loader=jinja2.DictLoader(_TEMPLATES), undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    made.filters |= {
        "clean": clean,
        "clock": words.clock,
        "command": words.command_line,
        "display_name": words.display_name,
        "glyph": words.glyph_of,
        "json_text": words.json_text,
        "kind": words.kind_of,
        "moment": words.moment,
        "ms": words.milliseconds,
        "names": words.names,
        "number": words.number,
        "percent": words.percent,
        "setting": words.setting,
        "size": words.size,
        "span": words.span,
        "state": words.state_of,
        "text": words.text,
    }
    made.globals |= {
        "bars_of": plots.bars,
        "height": plots.HEIGHT,
        "life_height": plots.LIFELINE_HEIGHT,
        "life_labels": plots.LABELS,
        "lines_of": plots.lines,
        "mark": _MARK,
        "not_known": UNKNOWN,
        "share": words.share,
        "ticks": plots.TICKS,
        "width": plots.WIDTH,
    }
    return made


_PLACES: Final[tuple[tuple[str, str, Role], ...]] = (
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
_MAX_TYPED: Final = 256 * 1024
"""Of one field of a form."""

Pairs = Mapping[str, str]
Page = Callable[..., Awaitable[Any]]


class Frame:
    """Makes pages. Operations are `performed` as the person who asks for the page."""

    def __init__(self, view: View, performed: Mapping[Operation, Perform]) -> None:
        self.view = view
        self._performed = performed

    async def ask(self, operation: Operation, query: Pairs | None = None, **arguments: str) -> Any:
        """Return what an operation answers to the same person, as a client reads it. Raises what it does."""
        said = await self._performed[operation]((query or {}).items(), arguments)
        return msgspec.json.decode(said if isinstance(said, bytes) else msgspec.json.encode(said))

    def add(self, app: QuartTrio, pages: Mapping[str, Page], *, strict: bool = True) -> None:
        """Add pages to an application, by their routes in the table; if not `strict`, a slash may follow a path."""
        for route, page in pages.items():
            add_page(app, DASHBOARD[route], self._with_errors(page), strict=strict)

    async def page(self, template: str, title: str, *, code: int = 200, **values: Any) -> Response:
        """Return a page: `values` are what its template needs beside what every page has."""
        view, person, stranger = self.view, REQUESTER.get().person, REQUESTER.get() is ANYBODY
        common = {
            "here": request.path,
            "json": "",
            "names": ORDERS,
            "now": view.clock(),
            "orders": self.may_order,
            "places": [(path, name) for path, name, role in _PLACES if person.may(role) and not stranger],
            "questions": 0 if stranger else len(view.elicitations.of(view.principal)),
            "title": title,
            "token": self.token,
            "urgent": 0,
            "user": person.user,
            "version": view.version,
        }
        return await _html(template, code, **{**common, **values})

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

    def _with_errors(self, page: Page) -> Page:
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
        return {name: value[:_MAX_TYPED] for name, value in form.items()}

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
