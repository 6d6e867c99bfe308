"""A server's address and the client that asks there: requests, redirects within the origin.

- What a server, or whoever answers in its place, names as another origin is never asked, and gets no header of ours.
- This is the border of HTTP: everything of an answer is read in the block of `Site.request`, which raises nothing but
  `httpx2.HTTPError`, and `Site.failure` makes a `Failure` of that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import httpx2
import trio

from actors.kit.fairness.share import share_of
from actors.protocol.wire.peer import Failure
from actors.transport.border import Border
from actors.transport.http.authorization import denial_of
from actors.transport.http.client.verdict import UnforeseenAnswer, of_error, of_status
from actors.transport.http.head import retry_after_s
from actors.transport.http.remote import HttpLimits, server_of

MAX_REDIRECTS = 3
_REDIRECTS = {"POST": (307, 308), "GET": (301, 302, 303, 307, 308), "DELETE": (307, 308)}
"""Those that leave a request what it is (RFC 9110 15.4)."""
_CLOSE_S = 1.0


class Site:
    """One address, asked in the turns of its server (`share`). `proxy` is the variable that names one, or empty."""

    def __init__(
        self, url: str, limits: HttpLimits, client: httpx2.AsyncClient, border: Border | None = None, proxy: str = ""
    ) -> None:
        self.url = httpx2.URL(url)
        self.share = share_of(server_of(url))
        self.limits = limits
        self._client = client
        self._border = border or Border(self.url.host)
        self._proxy = proxy

    @asynccontextmanager
    async def request(
        self, verb: str, head: Mapping[str, str], body: bytes | None = None, *, at: httpx2.URL | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """The answer to a request, its body still to be read. `at` is another address of the same origin.

        That of a redirect which leads out of the origin, or on and on, is given as it is. Raises `httpx2.HTTPError`,
        whatever is raised in the block.
        """
        try:
            response = await self._follow(verb, head, body, self.url if at is None else at)
            try:
                yield response
            finally:
                with trio.move_on_after(_CLOSE_S, shield=True):
                    await response.aclose()
        except httpx2.HTTPError:
            raise
        except Exception as error:
            raise UnforeseenAnswer(self._border.unforeseen(error)) from error

    def failure(self, id_: bytes, error: httpx2.HTTPError) -> Failure:
        return of_error(id_, error, self._proxy)

    def refusal(self, id_: bytes, response: httpx2.Response) -> Failure:
        proxy = self._proxy if self.url.scheme == "http" else ""  # else what it passes on is sealed
        after_s = retry_after_s(response.headers.get("retry-after"))
        challenged = "www-authenticate" in response.headers
        return of_status(id_, response.status_code, after_s, denial_of(response), proxy, challenged=challenged)

    async def _follow(self, verb: str, head: Mapping[str, str], body: bytes | None, url: httpx2.URL) -> httpx2.Response:
        for followed in range(MAX_REDIRECTS + 1):
            request = self._client.build_request(verb, url, headers=head, content=body)
            response = await self._client.send(request, stream=True)
            if response.status_code not in _REDIRECTS[verb] or followed == MAX_REDIRECTS:
                break
            place = response.headers.get("location", "")
            target = self.within(url, place) if place else None
            if target is None:
                break
            await response.aclose()
            url = target
        return response

    def within(self, url: httpx2.URL, reference: str) -> httpx2.URL | None:
        """Return where a reference found at `url` leads; None out of the origin, and for what is no reference.

        The user it may name is not ours to be: the credential stays the one that the operator gave.
        """
        try:
            target = url.join(reference)
        except (httpx2.InvalidURL, ValueError):
            return None
        return target.copy_with(userinfo=self.url.userinfo) if _origin(target) == _origin(self.url) else None

    async def tell(self, head: Mapping[str, str], body: bytes, *, at: httpx2.URL | None = None) -> None:
        """Post what has no answer. If it does not arrive, what follows from that is told by the requests.

        It is sent once more if its connection broke: a server may close a kept one just then, and a call whose question
        is not answered would hang. Whoever gets the same answer or notification twice makes nothing of the second.
        """
        await self._say("POST", head, body, at)

    async def forget(self, head: Mapping[str, str]) -> None:
        """Tell the server that a session is over; what it says to that is not read. Sent as `tell` does."""
        await self._say("DELETE", head)

    async def _say(
        self, verb: str, head: Mapping[str, str], body: bytes | None = None, at: httpx2.URL | None = None
    ) -> None:
        with suppress(httpx2.HTTPError), trio.move_on_after(self.limits.write_timeout_s):
            with suppress(httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout):
                async with self.request(verb, head, body, at=at):
                    return
            async with self.request(verb, head, body, at=at):
                pass


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
