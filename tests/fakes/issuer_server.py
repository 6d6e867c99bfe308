"""A server and its authorization server in one, over real sockets: what it publishes, and answers, is data."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs

import trio

from tests.fakes.remote_server import Request, read_request

MCP = "/mcp"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
ISSUER = "/.well-known/oauth-authorization-server"


@dataclass
class Reply:
    """One answer. A body that is no bytes is JSON."""

    body: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class IssuerServer:
    """`pages` has the answer to each path; what is not there is 404. `requests` is everything that was asked."""

    def __init__(self) -> None:
        self.base = ""
        self.pages: dict[str, Reply] = {}
        self.requests: list[Request] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Listen for the block, with pages that are as they should be."""
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            self.base = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
            self.pages = {
                MCP: Reply(status=401, headers={"www-authenticate": 'Bearer scope="read"'}),
                RESOURCE: Reply({"resource": f"{self.base}/mcp", "authorization_servers": [self.base]}),
                ISSUER: Reply(self.metadata()),
                "/register": Reply({"client_id": "given"}, 201),
                "/token": Reply({"access_token": "a1", "token_type": "Bearer", "refresh_token": "r1"}),
                "/revoke": Reply(),
            }
            await nursery.start(trio.serve_listeners, self._converse, listeners)
            yield self
            nursery.cancel_scope.cancel()

    def metadata(self, **members: Any) -> dict[str, Any]:
        """What it says of itself as an authorization server."""
        return {
            "issuer": self.base,
            "authorization_endpoint": f"{self.base}/authorize",
            "token_endpoint": f"{self.base}/token",
            "registration_endpoint": f"{self.base}/register",
            "revocation_endpoint": f"{self.base}/revoke",
            "code_challenge_methods_supported": ["S256"],
            **members,
        }

    def asked(self, path: str) -> list[Request]:
        """The requests for a path."""
        return [request for request in self.requests if request.path.partition("?")[0] == path]

    def form(self, path: str) -> dict[str, str]:
        """The form that was posted last to a path."""
        return {name: values[0] for name, values in parse_qs(self.asked(path)[-1].body.decode()).items()}

    def reply(self, request: Request) -> Reply:
        return self.pages.get(request.path.partition("?")[0], Reply(status=404))

    async def _converse(self, stream: trio.SocketStream) -> None:
        async with stream:  # whoever reads no body may be gone in the middle of it
            with suppress(trio.BrokenResourceError):
                await self._answer(stream)

    async def _answer(self, stream: trio.SocketStream) -> None:
        while (request := await read_request(stream)) is not None:
            self.requests.append(request)
            reply = self.reply(request)
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            await request.respond(reply.status, body, **reply.headers)
