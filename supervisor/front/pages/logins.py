"""Logins at servers: begun and ended by an operator, finished by a browser that comes back (`/oauth/callback`).

- An order is a POST without a body, as others are: a page of a foreign origin cannot give it.
- The page that a browser sees in the end shows nothing that came with its request, loads nothing and leads nowhere.
"""

from __future__ import annotations

from html import escape
from typing import Annotated, Final

import msgspec
from quart import Response, request
from quart_trio import QuartTrio

from actors.errors import InvalidArguments, LoginFailed
from supervisor.front.pages.api import View
from supervisor.front.pages.app import json_response, with_query
from supervisor.front.pages.requests import check_from_here
from supervisor.oauth.port import CALLBACK, Accounts, CallbackQuery

MAX_VALUE_CHARS: Final = 4096
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
_UNKNOWN: Final = "Nobody waits for this login any more: it was finished, it took too long, or it was begun elsewhere."


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to wait for the end of a login, in seconds."""

    wait_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.0


def add_login_routes(view: View, app: QuartTrio) -> None:
    pages = LoginPages(view)
    app.add_url_rule(CALLBACK, "oauth_callback", pages.callback)
    app.add_url_rule("/api/logins/<login>", "login_progress", with_query(WaitQuery, pages.progress))
    app.add_url_rule("/api/servers/<server>/login", "login", pages.login, methods=["POST"])
    app.add_url_rule("/api/servers/<server>/logout", "logout", pages.logout, methods=["POST"])


class LoginPages:
    """Answers for one login at a time; without servers to log in at they say so."""

    def __init__(self, view: View) -> None:
        self._view = view

    async def login(self, server: str) -> Response:
        """Begin a login: `state` is `pending`, with the `url` at which a user says yes, and its name, `login`.

        `state` is `done` where no user is needed.
        """
        return json_response(await self._accounts_for(server).login(server, self._view.principal))

    async def logout(self, server: str) -> Response:
        """End a login, as the command does."""
        message = await self._accounts_for(server).logout(server, self._view.principal)
        return json_response({"server": server, "message": message})

    def _accounts_for(self, server: str) -> Accounts:
        check_from_here(request.scope)
        self._view.control.check(server)
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
        status = await accounts.progress(login, wanted.wait_s) if accounts is not None else None
        if status is None:
            raise InvalidArguments("there is no such login; it may be too long ago")
        return json_response(status)

    async def callback(self) -> Response:
        """Finish a login whose browser comes back here, and show its user a page."""
        given: dict[str, list[str]] = request.args.to_dict(flat=False)
        query = _query(given)
        accounts = self._view.accounts()
        status = await accounts.callback(query) if query is not None and accounts is not None else None
        if status is None:
            return _page("No login", _UNKNOWN, 400)
        if status.state == "done":
            return _page("Logged in", f"{status.message}. You can close this window.", 200)
        return _page("Not logged in", f"{status.message}. You can close this window.", 400)


def _query(given: dict[str, list[str]]) -> CallbackQuery | None:
    """Return what a browser brings; None for what can be read in two ways, or is too long."""
    known = {name: given.get(name, []) for name in CallbackQuery.__struct_fields__}
    if any(len(values) > 1 or len(value) > MAX_VALUE_CHARS for values in known.values() for value in values):
        return None
    single = {name: values[0] for name, values in known.items() if values}
    return CallbackQuery(**single) if single.get("state") else None


def _page(title: str, text: str, status: int) -> Response:
    body = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>mcpvisor: {escape(title)}</title>'
        f"<h1>{escape(title)}</h1><p>{escape(text)}</p></html>"
    )
    return Response(body, status=status, content_type="text/html; charset=utf-8", headers=_HEADERS)
