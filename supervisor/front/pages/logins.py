"""Logins at servers: begun and ended by whoever may, finished by a browser that comes back (`/oauth/callback`).

- A login that all share is an admin's; where each user logs in, everybody does for themself. How one is doing is told
  to nobody but who began it.
- An order is a POST without a body, as others are: a page of a foreign origin cannot give it.
- The page that a browser sees in the end shows nothing that came with its request, loads nothing and leads nowhere.
- Where people have to show who they are it has a code: see `supervisor.oauth.logins`. What is given for a login is
  shown and logged nowhere.
"""

from __future__ import annotations

from html import escape
from typing import Annotated, Final

import msgspec
from quart import Response, request
from quart_trio import QuartTrio

from actors.errors import InvalidArguments, LoginFailed
from actors.transport.redaction import Confidential
from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, with_query
from supervisor.front.pages.audit import describe
from supervisor.front.pages.bodies import read_json
from supervisor.front.pages.requests import check_from_here
from supervisor.front.pages.rights import REQUESTER
from supervisor.oauth.port import CALLBACK, Accounts, Confirmation, check_asker, login_user, of_user, query_of

MAX_ANSWER_CHARS: Final = 16_384
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
_UNKNOWN: Final = "Nobody waits for this login any more: it was finished, it took too long, or it was begun elsewhere."

_NONE: Final = "there is no such login; it may be too long ago"


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to wait for the end of a login, in seconds."""

    wait_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0


class LoginAnswer(Confidential, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What whoever began a login says of the browser: the code that it shows, or the address that it ended at."""

    answer: Annotated[str, msgspec.Meta(max_length=MAX_ANSWER_CHARS)]


_ANSWER: Final = msgspec.json.Decoder(LoginAnswer)


def add_login_routes(view: View, app: QuartTrio) -> None:
    pages = LoginPages(view)
    app.add_url_rule(CALLBACK, "oauth_callback", pages.callback)
    app.add_url_rule("/api/logins/<login>", "login_progress", with_query(WaitQuery, pages.progress))
    app.add_url_rule("/api/logins/<login>/answer", "login_answer", pages.answer, methods=["POST"])
    app.add_url_rule("/api/servers/<server>/login", "login", pages.login, methods=["POST"])
    app.add_url_rule("/api/servers/<server>/logout", "logout", pages.logout, methods=["POST"])


class LoginPages:
    """Answers for one login at a time; without servers to log in at they say so."""

    def __init__(self, view: View) -> None:
        self._view = view

    async def login(self, server: str) -> Response:
        """Begin a login: `state` is `pending`, with the `url` at which a user says yes, and its name, `login`.

        With `confirms` it takes the code that the browser shows. `state` is `done` where no user is needed. A member
        may do that where each user has a login of their own.
        """
        accounts = self._accounts_for(server)
        return json_response(await accounts.login(server, REQUESTER.get().person))

    async def logout(self, server: str) -> Response:
        """End a login, as the command does; a member their own."""
        accounts = self._accounts_for(server)
        return json_response({"server": server, "message": await accounts.logout(server, REQUESTER.get().person)})

    def _accounts_for(self, server: str) -> Accounts:
        """Return what has the logins of a server, if whoever asks may log in and out there."""
        check_from_here(request.scope)
        deployment, asker = self._view.deployment.value, REQUESTER.get().person
        if asker.may("admin"):
            self._view.control.check(server)
        check_asker(deployment, asker, server)
        describe(server, of_user(login_user(deployment, server, asker)))
        accounts = self._view.accounts()
        if accounts is None:
            raise LoginFailed(
                f'no login at {server!r} is possible: only entries with a "url" that begins with http have one; a '
                'local server takes its key from "env"',
                server=server,
            )
        return accounts

    async def progress(self, wanted: WaitQuery, login: str) -> Response:
        """Show whether a login is `pending`, `done` or `failed`; it waits for the end for `wait_s` seconds at most."""
        accounts = self._view.accounts()
        status = await accounts.progress(login, wanted.wait_s, self._view.principal) if accounts is not None else None
        if status is None:
            raise InvalidArguments(_NONE)
        return json_response(status)

    async def answer(self, login: str) -> Response:
        """Go on with a login: `{"answer": "..."}` has the code that the browser shows, or the address it ended at.

        It answers as for `GET`, when the login is over. 400 if that is wrong: it may be given a few times.
        """
        check_from_here(request.scope)
        accounts, asker = self._view.accounts(), REQUESTER.get().person
        has = f'it has "answer", a text of at most {MAX_ANSWER_CHARS} characters'
        given = await read_json(self._view.bench, _ANSWER, has)
        status = await accounts.answer(login, asker, given.answer) if accounts is not None else None
        if status is None:
            raise InvalidArguments(_NONE)
        return json_response(status)

    async def callback(self) -> Response:
        """Take what a browser brings back from a login, and show its user a page."""
        query = query_of(request.args.to_dict(flat=False))
        accounts = self._view.accounts()
        status = await accounts.callback(query) if query is not None and accounts is not None else None
        if status is None:
            return _page("No login", _UNKNOWN, 400)
        if isinstance(status, Confirmation):
            return _confirmation(status)
        if status.state == "done":
            return _page("Logged in", f"{status.message}. You can close this window.", 200)
        return _page("Not logged in", f"{status.message}. You can close this window.", 400)


def _confirmation(wanted: Confirmation) -> Response:
    who = f"The user {wanted.user}" if wanted.user else "The operator of this daemon"
    text = f"{who} began this login at {wanted.server}. Is that you? Type this code where mcpvisor login asks for it:"
    warning = (
        "If somebody sent you here, or asks you for the code, close this window: with the code they would use your "
        f"account at {wanted.server}."
    )
    return _page("One more step", text, 200, wanted.code, warning)


def _page(title: str, text: str, status: int, code: str = "", warning: str = "") -> Response:
    more = f"<p><code>{escape(code)}</code></p><p>{escape(warning)}</p>" if code else ""
    body = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>mcpvisor: {escape(title)}</title>'
        f"<h1>{escape(title)}</h1><p>{escape(text)}</p>{more}</html>"
    )
    return Response(body, status=status, content_type="text/html; charset=utf-8", headers=_HEADERS)
