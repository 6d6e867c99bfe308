"""A client that is the official SDK's, among ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

import httpx2
import mcp
import trio
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.chaos.answers import settle
from tests.chaos.clients import PATIENCE_S, PAUSE_S, Client, Gone, Tool
from tests.chaos.history import Request


class SdkClient(Client):
    """Over HTTP, as the SDK does it."""

    kind = "sdk"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._client: mcp.Client | None = None
        self._scope = trio.CancelScope()

    async def run(self, work: Callable[[Client], Awaitable[None]]) -> None:
        headers = {"authorization": f"Bearer {self.token}"}
        while not self.over:
            self._scope, self._torn = trio.CancelScope(), False
            try:
                with self._scope:
                    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
                        transport = streamable_http_client(f"http://127.0.0.1:{self.port}/mcp", http_client=http)
                        async with mcp.Client(transport, mode="auto") as client:
                            self._client = client
                            await work(self)
            except* (Gone, MCPError, httpx2.HTTPError, OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            await trio.sleep(PAUSE_S)

    def tear(self) -> None:
        self._torn = True
        self._scope.cancel()

    async def ask(self, request: Request, tool: Tool) -> None:
        assert self._client is not None
        try:
            with trio.move_on_after(PATIENCE_S):
                result = await self._client.call_tool(*tool)
                said = result.model_dump(mode="json", by_alias=True, exclude_none=True)
                settle(request, {"result": said}, monotonic(), self.marks)
        except MCPError as error:
            told = {"code": error.error.code, "message": error.error.message, "data": error.error.data}
            if told["data"] is None:  # it is about the connection, which the SDK tells in the same way
                self.end(request, error)
                raise Gone from None
            settle(request, {"error": told}, monotonic(), self.marks)
        except (httpx2.HTTPError, OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.end(request, error)
            raise Gone from None
        except trio.Cancelled:
            self.end(request, "the client was closed")
            raise
