"""The seam between a remote server and whoever holds its access tokens (RFC 6750): a client that sends them.

A refusal by 401 or 403 means that nothing was done, so a request may be sent once more with another token; never a
third time. Tokens go with what is sent to the server, and the client is used for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import httpx2
import msgspec

from actors.transport.redaction import HIDDEN, forms_of

REFUSALS: Final = (401, 403)
MIN_HIDDEN_CHARS: Final = 16
"""A shorter token may be a word; issuers give long ones (RFC 6749 10.10)."""
MAX_HIDDEN: Final = 3
"""So many tokens are remembered: that of now, and those before, which a late answer may have."""
_DENIAL: Final = "mcpvisor.denial"
"""Where a response carries what is said of it."""


class Denial(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from a refusal: another `token` to try; that a `login` helps; a `reason`, if there is one."""

    token: str = ""
    login: bool = False
    reason: str = ""


class NoToken(httpx2.ConnectError):
    """A token cannot be had now, as nobody gives one; nothing was sent. `reason` may reach clients."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Authorizer(Protocol):
    """Holds the access token of one server."""

    async def token(self) -> str:
        """Return the token to send, renewed if it is over; empty if there is none. Raises `NoToken`."""

    def on_accepted(self, token: str) -> None:
        """Take that the server knows a token."""

    async def on_refused(self, token: str, status: int, challenges: Sequence[str]) -> Denial:
        """Take that a token, or none, was refused by 401 or 403, with these `WWW-Authenticate`. Raises `NoToken`."""


class AuthorizedClient(httpx2.AsyncClient):
    """A client whose requests carry the token of an authorizer, where there is one."""

    def __init__(self, authorizer: Authorizer | None, **more: Any) -> None:
        super().__init__(**more)
        self._authorizer = authorizer
        self._sent: dict[str, tuple[bytes, ...]] = {}

    def without_tokens(self, said: bytes) -> bytes:
        """Return a message of the server with `***` for the tokens that it was sent.

        A login is that of one user, and what the server says is read by all who use it.
        """
        for forms in tuple(self._sent.values()):  # it may be in a thread
            for form in forms:
                if form in said:
                    said = said.replace(form, HIDDEN.encode())
        return said

    def _remember(self, token: str) -> None:
        if len(token) >= MIN_HIDDEN_CHARS and token not in self._sent:
            forms = {*forms_of(token), token.replace("/", "\\/")}  # JSON may have a slash in either form
            self._sent[token] = tuple(form.encode() for form in sorted(forms))
            if len(self._sent) > MAX_HIDDEN:
                del self._sent[next(iter(self._sent))]

    async def send(self, request: httpx2.Request, *, stream: bool = False, **more: Any) -> httpx2.Response:
        """Send a request as `httpx2.AsyncClient.send` does, and once more if another token may be taken."""
        authorizer = self._authorizer
        if authorizer is None:
            return await super().send(request, stream=stream, **more)
        token = await authorizer.token()
        for last in (False, True):
            if token:
                self._remember(token)
                request.headers["authorization"] = f"Bearer {token}"
            response = await super().send(request, stream=True, **more)
            denial = await _denial(authorizer, token, response)
            if last or denial is None or not denial.token or denial.token == token:
                break
            await response.aclose()
            token = denial.token
        if not stream:
            await response.aread()
        return response


async def _denial(authorizer: Authorizer, token: str, response: httpx2.Response) -> Denial | None:
    status = response.status_code
    if status != 401 and token:
        authorizer.on_accepted(token)
    if status not in REFUSALS:
        return None
    try:
        denial = await authorizer.on_refused(token, status, response.headers.get_list("www-authenticate"))
    except BaseException:
        await response.aclose()
        raise
    response.extensions[_DENIAL] = denial
    return denial


def denial_of(response: httpx2.Response) -> Denial | None:
    """Return what an authorizer said of a refusal; None where there was none, or nobody to say it."""
    denial = response.extensions.get(_DENIAL)
    return denial if isinstance(denial, Denial) else None
