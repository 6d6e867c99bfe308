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
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import msgspec
from quart import Response, request

from actors.errors import InvalidArguments, LoginFailed
from actors.transport.redaction import Confidential
from supervisor import operations
from supervisor.front.pages.performing import describe, performs
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.view import View
from supervisor.oauth.port import Confirmation, check_asker, login_user, of_user, query_of

if TYPE_CHECKING:  # it needs cryptography, which takes megabytes
    from supervisor.oauth.accounts import OAuthAccounts

_MAX_ANSWER_CHARS: Final = 16_384
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

    HAS: ClassVar[str] = f'it has "answer", a text of at most {_MAX_ANSWER_CHARS} characters'
    answer: Annotated[str, msgspec.Meta(max_length=_MAX_ANSWER_CHARS)]


@performs(operations.BEGIN_LOGIN)
async def begin_login(view: View, server: str) -> Any:
    """Begin a login: `state` is `pending`, with the `url` at which a user says yes, and its name, `login`.

    With `confirms` it takes the code that the browser shows. `state` is `done` where no user is needed. A member
    may do that where each user has a login of their own.
    """
    accounts = _accounts_for(view, server)
    return await accounts.login(server, REQUESTER.get().person)


@performs(operations.LOGOUT)
async def logout(view: View, server: str) -> Any:
    """End a login, as the command does; a member their own."""
    accounts = _accounts_for(view, server)
    return {"server": server, "message": await accounts.logout(server, REQUESTER.get().person)}


def _accounts_for(view: View, server: str) -> OAuthAccounts:
    """Return what has the logins of a server, if whoever asks may log in and out there."""
    deployment, asker = view.deployment.value, REQUESTER.get().person
    if asker.may("admin"):
        view.control.check(server)
    check_asker(deployment, asker, server)
    describe(server, of_user(login_user(deployment, server, asker)))
    accounts = view.accounts()
    if accounts is None:
        raise LoginFailed(
            f'no login at {server!r} is possible: only entries with a "url" that begins with http have one; a '
            'local server takes its key from "env"',
            server=server,
        )
    return accounts


@performs(operations.LOGIN)
async def login(view: View, query: WaitQuery, login: str) -> Any:
    """Show whether a login is `pending`, `done` or `failed`; it waits for the end for `wait_s` seconds at most."""
    accounts = view.accounts()
    status = await accounts.progress(login, query.wait_s, view.principal) if accounts is not None else None
    if status is None:
        raise InvalidArguments(_NONE)
    return status


@performs(operations.ANSWER_LOGIN)
async def answer_login(view: View, body: LoginAnswer, login: str) -> Any:
    """Go on with a login: `{"answer": "..."}` has the code that the browser shows, or the address it ended at.

    It answers as for `GET`, when the login is over. 400 if that is wrong: it may be given a few times.
    """
    accounts, asker = view.accounts(), REQUESTER.get().person
    status = await accounts.answer(login, asker, body.answer) if accounts is not None else None
    if status is None:
        raise InvalidArguments(_NONE)
    return status


@performs(operations.LOGIN_CALLBACK)
async def callback(view: View) -> Response:
    """Take what a browser brings back from a login, and show its user a page."""
    query = query_of(request.args.to_dict(flat=False))
    accounts = view.accounts()
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
