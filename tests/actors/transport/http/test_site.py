"""What is posted without an answer arrives, also where a server closes the connection at that moment."""

from __future__ import annotations

import time

import httpx2
import pytest
import trio

from actors.transport.http.client.verdict import context_for
from actors.transport.http.remote import HttpLimits, Remote
from actors.transport.http.site import Site
from actors.transport.http.transport import HttpTransport


@pytest.mark.parametrize(("closes", "arrives"), [(0, 1), (1, 2), (9, 2)])
async def test_what_has_no_answer_is_posted_once_more_if_its_connection_broke(closes: int, arrives: int) -> None:
    bodies: list[bytes] = []

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            data = b""
            while not data.endswith(b"{}"):
                data += await stream.receive_some()
            bodies.append(data.rpartition(b"\r\n\r\n")[2])
            if len(bodies) > closes:
                await stream.send_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")

    async with trio.open_nursery() as nursery, httpx2.AsyncClient(trust_env=False) as client:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        with trio.fail_after(30):
            await Site(f"http://127.0.0.1:{port}/mcp", HttpLimits(), client).tell({}, b"{}")
        nursery.cancel_scope.cancel()
    assert bodies == [b"{}"] * arrives


@pytest.mark.parametrize(("idle_s", "connections"), [(3.5, 1), (4.5, 2)])
async def test_no_request_is_sent_on_a_connection_that_its_server_may_be_closing(
    idle_s: float, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[trio.SocketStream] = []

    async def serve(stream: trio.SocketStream) -> None:
        opened.append(stream)
        async with stream:
            async for data in stream:
                if data.endswith(b"{}"):
                    await stream.send_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}/mcp"
        client, site = HttpTransport(Remote(url=url))._open(await context_for(url))
        with trio.fail_after(30):
            async with site.request("POST", {}, b"{}") as answer:
                await answer.aread()
            later = time.monotonic() + idle_s
            monkeypatch.setattr(time, "monotonic", lambda: later)
            async with site.request("POST", {}, b"{}") as answer:
                await answer.aread()
            await client.aclose()
        nursery.cancel_scope.cancel()
    assert len(opened) == connections
