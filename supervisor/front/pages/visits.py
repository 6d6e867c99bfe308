"""Browsers at a fleet: their pages, and what these ask for, come from one node, whichever they reach. So does what
names a node, by `?node=NAME`: one address for several of them would tell of another one each time.

Who is signed in, forms that are half filled in, logins and questions under way are in the memory of one process. So its
pages give a browser a cookie that names its life, and every other node hands over what comes with that, byte by byte.
So it does with what comes back to a login, by a browser or by who began it: its names have the life of the node where
it began. Who it is that node finds out. When it is gone, the next one that the browser reaches takes its place.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec
import trio
from quart import Response
from quart import request as page
from quart_trio import QuartTrio

from actors.errors import MailboxFull, SupervisorError
from supervisor.fleet.engine import Elsewhere, Node
from supervisor.fleet.links.requests import SentRequest
from supervisor.fleet.peers import Peers, life_in
from supervisor.front.admission import STATIC, is_page, read_cookie
from supervisor.front.edge.parser import HttpProtocolError
from supervisor.front.edge.request import BodyLimits, HttpRequest, TooLate
from supervisor.front.http.elsewhere import VisitHead
from supervisor.front.http.streams import cancel_when_set
from supervisor.metatools.texts import clean
from supervisor.oauth.port import CALLBACK, query_in

COOKIE: Final = "mcpvisor-node"
NODE: Final = "node"
METRICS: Final = "/metrics"
LOGINS: Final = "/api/logins/"
MAX_NAME: Final = 64
"""Characters of a name that is repeated."""


class BrowserVisits:
    """Those of browsers that have their pages from another node. `closing` ends them."""

    def __init__(self, peers: Peers, limits: BodyLimits, closing: trio.Event) -> None:
        self._peers = peers
        self._limits = limits
        self._closing = closing

    def name_node(self, app: QuartTrio) -> None:
        """Have all pages of an application name this node to a browser."""

        async def name(response: Response) -> Response:
            await trio.lowlevel.checkpoint()
            if _is_personal(page.path) and page.cookies.get(COOKIE) != self._peers.life:
                response.set_cookie(COOKIE, self._peers.life, path="/", httponly=True, samesite="Lax")
            return response

        app.after_request(name)

    async def pass_on(self, request: HttpRequest) -> bool:
        """Have a request answered by the node that it names, or that its browser has its pages from; False if that is
        this one.
        """
        named = _take_node(request)
        if named == self._peers.name:
            return False
        if not named:
            node = self._node_of(request)
            return node is not None and await self._hand_over(request, node)
        node = next((each for each in self._peers.others() if each.name == named), None)
        if node is None:
            text = f"this fleet has no node {clean(named[:MAX_NAME])!r} now"
            await request.fail(404, f"{text}; mcpvisor nodes (/api/nodes) shows those it has")
        elif not await self._hand_over(request, node):
            await request.fail(503, f"the node {named} does not answer; retry shortly")
        return True

    async def _hand_over(self, request: HttpRequest, node: Node) -> bool:
        """Have a request answered by another node; False if nothing was sent."""
        try:
            body = await request.body(self._limits)
        except TooLate as error:
            await request.fail(408, str(error))
            return True
        except SupervisorError as error:
            await request.fail(503 if isinstance(error, MailboxFull) else error.http_status, str(error))
            return True
        try:
            sent = await self._peers.request(node, _head_of(request), body)
        except (Elsewhere, SupervisorError):  # it is about to be gone
            return False
        try:
            await self._relay(sent, request)
        finally:
            sent.leave()
        return True

    def _node_of(self, request: HttpRequest) -> Node | None:
        """Return which other node has the login that a request is about, or the pages of a browser.

        None for what is no browser, or shows a token, and is about no login.
        """
        if life := life_in(_login_in(request)).hex():
            if life == self._peers.life:
                return None
            if (node := self._peers.find(life)) is not None:
                return node
        reads = request.method == "GET" and request.path.startswith("/api/")
        if (
            request.is_websocket
            or b"authorization" in request.fields.lines
            or not (_is_personal(request.path) or request.path == CALLBACK or reads)
        ):
            return None
        life = read_cookie(request.fields, COOKIE)
        return self._peers.find(life) if life else None

    async def _relay(self, sent: SentRequest, request: HttpRequest) -> None:
        """Hand the answer over as it comes. What breaks off does so for the browser, too."""
        failed: SupervisorError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_when_set, self._closing, nursery.cancel_scope)
            with request.leaving.ends(nursery.cancel_scope):
                try:
                    await sent.read_head()
                    connection = request.hand_over()
                    while (part := await sent.next()) is not None:
                        await connection.write(part)
                except SupervisorError as error:
                    failed = error
            nursery.cancel_scope.cancel()
        if failed is not None:  # nothing, if an answer has begun
            await request.fail(503, failed.message)


def _is_personal(path: str) -> bool:
    return is_page(path) and not path.startswith(STATIC)


def _take_node(request: HttpRequest) -> str:
    """Take the name of a node out of the target of a request, and return it; empty if there is none.

    Raises `HttpProtocolError` for several.
    """
    path, _, query = request.target.partition(b"?")
    of_node = request.path == METRICS or request.path.startswith("/api/") or _is_personal(request.path)
    if not of_node or request.is_websocket or NODE.encode() not in query:
        return ""
    given = parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True, errors="surrogateescape")
    names = [value for key, value in given if key == NODE]
    if len(names) > 1:
        raise HttpProtocolError(400, "more than one node is named; one answers")
    rest = urlencode([each for each in given if each[0] != NODE], errors="surrogateescape").encode()
    request.target = path + b"?" + rest if rest else path
    return names[0] if names else ""


def _login_in(request: HttpRequest) -> str:
    """Return the name of a login that a request comes back with; empty without one."""
    if request.is_websocket:
        return ""
    if request.path.startswith(LOGINS):
        return request.path.removeprefix(LOGINS).partition("/")[0]
    query = query_in(request.target.decode("ascii", "replace")) if request.path == CALLBACK else None
    return "" if query is None else query.state


def _head_of(request: HttpRequest) -> bytes:
    head = VisitHead(
        request.method,
        request.target,
        request.version,
        request.headers,
        request.ends,
        request.forwarded_for,
    )
    return msgspec.msgpack.encode(head)
