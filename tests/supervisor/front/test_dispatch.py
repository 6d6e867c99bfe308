"""The application's shell: who answers which path, and what nobody gets past."""

from __future__ import annotations

import errno
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from quart import Response, abort, request
from quart_trio import QuartTrio

from supervisor.front.edge.budget import Budget
from supervisor.front.edge.request import BodyLimits, HttpRequest
from supervisor.front.guard import TrustedProxies
from tests.fakes.front_server import Running, dispatch, running


async def mcp(door: str, request: HttpRequest) -> None:
    kind = "websocket" if request.is_websocket else "http"
    await request.answer(418, f'"{kind} {request.path}"'.encode())


def routes(app: QuartTrio) -> None:
    @app.get("/healthz")
    def health() -> str:
        return "ok"

    @app.get("/broken")
    def broken() -> str:
        raise RuntimeError("a secret")

    @app.get("/starved")
    def starved() -> str:
        raise OSError(errno.EMFILE, "Too many open files", "/a/secret/path")

    @app.post("/posted")
    async def posted() -> str:
        return str(len(await request.get_data()))

    @app.get("/gone")
    def gone() -> str:
        abort(410, "it was here")

    @app.get("/own")
    def own() -> str:
        abort(Response("mine", status=409))

    @app.get("/dir/")
    def directory() -> str:
        return "dir"


@asynccontextmanager
async def shell(**more: Any) -> AsyncIterator[Running]:
    async with running(dispatch(routes, mcp_http=mcp, mcp_websocket=mcp, **more)) as server:
        yield server


async def ask(server: Running, line: str, *headers: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """Send one request; `headers` default to our Host."""
    lines = [f"{line} HTTP/1.1", *(headers or (f"Host: 127.0.0.1:{server.port}",)), f"Content-Length: {len(body)}"]
    raw = await server.exchange("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body)
    head, _, rest = raw.partition(b"\r\n\r\n")
    first, *others = head.decode("latin-1").split("\r\n")
    return int(first.split()[1]), {k.lower(): v.strip() for k, _, v in (o.partition(":") for o in others)}, rest


async def test_each_path_has_its_handler() -> None:
    async with shell() as server:
        assert (await ask(server, "POST /mcp"))[::2] == (418, b'"http /mcp"')
        assert (await ask(server, "GET /healthz"))[::2] == (200, b"ok")
        upgrade = server.upgrade()
        for path in (b"/ws", b"/mcp"):
            answer = await server.exchange(upgrade.replace(b"/ws", path, 1))
            assert b" 418 " in answer
            assert answer.endswith(b'"websocket ' + path + b'"')


@pytest.mark.parametrize("path", ["/", "/mcp//", "/mcp2", "/MCP", "/x/../mcp"])
async def test_paths_that_look_like_it_are_none_of_mcp(path: str) -> None:
    async with shell() as server:
        assert (await ask(server, f"GET {path}"))[0] == 404


async def test_a_websocket_elsewhere_is_not_found() -> None:
    async with shell() as server:
        assert (await server.exchange(server.upgrade().replace(b"/ws", b"/nowhere", 1))).startswith(b"HTTP/1.1 404")


@pytest.mark.case("C06", "I21")
@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/nowhere", "/mcp/../x"])
async def test_no_path_is_served_to_a_foreign_host_or_page(path: str) -> None:
    async with shell() as server:
        host = f"Host: 127.0.0.1:{server.port}"
        status, headers, body = await ask(server, f"GET {path}", "Host: evil.example")
        assert (status, headers["content-type"]) == (421, "application/json")
        assert json.loads(body)["error"]["data"]["setting"] == "allowed_hosts"
        assert (await ask(server, f"GET {path}", host, "Origin: https://evil.example"))[0] == 403
        assert (await ask(server, f"GET {path}", host, "Origin: null"))[0] == 403


@pytest.mark.case("C06", "I21")
@pytest.mark.parametrize("path", [b"/mcp", b"/ws", b"/nowhere"])
async def test_no_websocket_opens_for_a_foreign_host_or_page(path: bytes) -> None:
    async with shell() as server:
        upgrade = server.upgrade().replace(b"/ws", path, 1)
        evil = upgrade.replace(server.host, b"Host: evil.example\r\n")
        assert (await server.exchange(evil)).startswith(b"HTTP/1.1 421")
        page = upgrade.replace(server.host, server.host + b"Origin: https://evil.example\r\n")
        assert (await server.exchange(page)).startswith(b"HTTP/1.1 403")


@pytest.mark.case("C14")
async def test_ambiguous_framing_is_refused_and_the_connection_closed() -> None:
    async with shell() as server:
        both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        smuggled = b"0\r\n\r\nGET /healthz HTTP/1.1\r\n" + server.host + b"\r\n"
        answer = await server.exchange(b"POST /posted HTTP/1.1\r\n" + server.host + both + smuggled)
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.case("C07")
async def test_a_target_with_a_host_of_its_own_is_refused() -> None:
    async with shell() as server:
        assert (await ask(server, "GET http://evil.example/healthz"))[0] == 400


async def test_errors_are_json_without_the_text_of_exceptions(caplog: pytest.LogCaptureFixture) -> None:
    async with shell() as server:
        for line, expected in (("GET /nowhere", 404), ("POST /healthz", 405), ("GET /broken", 500), ("GET /gone", 410)):
            status, headers, body = await ask(server, line)
            assert (status, headers["content-type"]) == (expected, "application/json")
            assert json.loads(body)["error"]["code"] == expected
            assert b"secret" not in body
        assert json.loads(body)["error"]["message"] == "it was here"
        assert "a secret" in caplog.text


async def test_want_of_resources_is_503_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async with shell() as server:
        status, headers, body = await ask(server, "GET /starved")
    assert (status, headers["retry-after"]) == (503, "1")
    assert "Too many open files" in json.loads(body)["error"]["message"]
    assert "secret" not in body.decode()
    assert "Traceback" not in caplog.text


async def test_so_it_is_at_the_mcp_endpoint(caplog: pytest.LogCaptureFixture) -> None:
    async def starved(door: str, request: HttpRequest) -> None:
        raise MemoryError

    async with running(dispatch(routes, mcp_http=starved, mcp_websocket=starved)) as server:
        assert (await ask(server, "POST /mcp"))[0] == 503
    assert "Traceback" not in caplog.text


async def test_a_body_over_the_limit_is_refused() -> None:
    async with shell(bodies=BodyLimits(10, 30.0)) as server:
        assert (await ask(server, "POST /posted", body=b"a" * 10))[::2] == (200, b"10")
        assert (await ask(server, "POST /posted", body=b"a" * 11))[0] == 413


async def test_a_body_there_is_no_room_for_and_one_that_never_comes_are_refused_as_such() -> None:
    async with running(dispatch(routes), budget=Budget(1000)) as server:
        status, _, body = await ask(server, "POST /posted", body=b"a" * 100_000)
        assert (status, json.loads(body)["error"]["code"]) == (503, 503)
    async with running(dispatch(routes, bodies=BodyLimits(100, 0.05))) as server:
        head = b"POST /posted HTTP/1.1\r\n" + server.host + b"Content-Length: 5\r\n\r\n"
        assert (await server.exchange(head)).startswith(b"HTTP/1.1 408")


@pytest.mark.case("I20")
async def test_answers_may_not_be_sniffed_or_framed() -> None:
    async with shell() as server:
        for line in ("GET /healthz", "GET /mcp", "GET /nowhere"):
            _, headers, _ = await ask(server, line)
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"


async def test_where_a_proxy_encrypts_nobody_else_may_connect() -> None:
    here, elsewhere = TrustedProxies(["10.0.0.5"]), _NobodyHere(["10.0.0.5"])
    async with running(dispatch(routes, mcp_http=mcp, proxies=here, only_proxies=True)) as server:
        assert (await ask(server, "POST /mcp"))[0] == 418, "this machine may"
    async with running(dispatch(routes, mcp_http=mcp, proxies=elsewhere, only_proxies=True)) as server:
        status, _, body = await ask(server, "POST /mcp")
        assert status == 421
        assert "trusted_proxies" in json.loads(body)["error"]["message"]


class _NobodyHere(TrustedProxies):
    def may_connect(self, address: str) -> bool:
        return self.trusts(address)


@pytest.mark.case("C15")
async def test_a_request_comes_from_where_a_proxy_says_that_is_believed() -> None:
    told = []

    async def tell(door: str, request: HttpRequest) -> None:
        told.append(request.sender)
        await request.answer(200)

    for proxies in (None, TrustedProxies(["10.0.0.5"]), TrustedProxies(["127.0.0.0/8"])):
        async with running(dispatch(routes, mcp_http=tell, proxies=proxies)) as server:
            host = f"Host: 127.0.0.1:{server.port}"
            await ask(server, "POST /mcp", host, "X-Forwarded-For: 6.6.6.6, 192.0.2.1")
    assert told == ["127.0.0.1", "127.0.0.1", "192.0.2.1"]
