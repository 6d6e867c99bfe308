"""Connections with TLS: the same answers, and a client that does it badly costs its own connection alone."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from supervisor.front.edge.request import BodyLimits, HttpRequest
from supervisor.front.edge.serve import Certificates
from tests.fakes.certificates import certificate
from tests.fakes.front_server import Running, frame, read_all, running, until

LARGE = b"x" * (3 * 1024 * 1024)
LIMITS = BodyLimits(16 * 1024 * 1024, 30.0)


async def answer(request: HttpRequest) -> None:
    if request.path == "/large":
        await request.answer(200, LARGE)
    elif request.path == "/stream":
        await request.start(200, ())
        for _ in range(3):
            await request.send(b"part")
        await request.end()
    else:
        await request.answer(200, b"%d" % len(await request.body(LIMITS)))


@asynccontextmanager
async def encrypted(directory: Path, **more: Any) -> AsyncIterator[tuple[Running, ssl.SSLContext]]:
    pem, _ = certificate(directory)
    certificates = Certificates(str(pem), str(directory / "key.pem"))
    async with running(answer, certificates=certificates, **more) as server:
        yield server, ssl.create_default_context(cafile=pem)


async def test_bodies_and_streams_of_any_size_come_through(tmp_path: Path) -> None:
    async with (
        encrypted(tmp_path) as (server, context),
        httpx2.AsyncClient(base_url=f"https://127.0.0.1:{server.port}", verify=context, trust_env=False) as client,
    ):
        for _ in range(3):  # on one connection
            assert (await client.get("/large")).content == LARGE
            assert (await client.post("/", content=LARGE)).text == str(len(LARGE))
            assert (await client.get("/stream")).text == "part" * 3
        assert server.counters.accepted == 1


async def test_an_answer_ends_with_a_word_that_is_signed(tmp_path: Path) -> None:
    """Else whoever stands in between could cut it short."""
    async with encrypted(tmp_path) as (server, context), await server.connect() as raw:
        stream = trio.SSLStream(raw, context, server_hostname="127.0.0.1", https_compatible=False)
        await stream.send_all(b"GET /x HTTP/1.1\r\n" + server.host + b"Connection: close\r\n\r\n")
        got = b""
        while part := await stream.receive_some():  # raises for an end without it
            got += part
        assert got.endswith(b"\r\n\r\n0")


async def test_a_client_that_speaks_clear_text_or_nothing_costs_its_own_connection(tmp_path: Path) -> None:
    async with encrypted(tmp_path, head_timeout_s=0.3) as (server, context):
        async with await server.connect() as silent:
            assert await read_all(silent) == b""
        clear = await server.exchange(b"GET / HTTP/1.1\r\n" + server.host + b"\r\n")
        assert b"HTTP/1.1" not in clear
        await until(lambda: server.counters.open == 0)
        assert server.counters.errors == 2
        async with httpx2.AsyncClient(verify=context, trust_env=False) as client:
            assert (await client.get(f"https://127.0.0.1:{server.port}/stream")).status_code == 200


async def test_old_versions_are_not_spoken(tmp_path: Path) -> None:
    async with encrypted(tmp_path) as (server, context):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        async with httpx2.AsyncClient(verify=context, trust_env=False) as client:
            assert (await client.get(f"https://127.0.0.1:{server.port}/stream")).status_code == 200
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        async with await server.connect() as raw:
            with pytest.raises(trio.BrokenResourceError):
                await trio.SSLStream(raw, context, server_hostname="127.0.0.1").do_handshake()


async def test_a_client_that_leaves_is_noticed(tmp_path: Path) -> None:
    left = trio.Event()

    async def wait(request: HttpRequest) -> None:
        await request.leaving.wait()
        left.set()

    pem, _ = certificate(tmp_path)
    certificates = Certificates(str(pem), str(tmp_path / "key.pem"))
    async with running(wait, certificates=certificates) as server:
        context = ssl.create_default_context(cafile=pem)
        stream = trio.SSLStream(await server.connect(), context, server_hostname="127.0.0.1", https_compatible=True)
        await stream.send_all(b"GET / HTTP/1.1\r\n" + server.host + b"\r\n")
        await stream.aclose()
        with trio.fail_after(30):
            await left.wait()


async def test_a_websocket_reads_and_writes_at_once(tmp_path: Path) -> None:
    pem, _ = certificate(tmp_path)
    certificates = Certificates(str(pem), str(tmp_path / "key.pem"))
    async with running(certificates=certificates) as server, await server.connect() as raw:
        context = ssl.create_default_context(cafile=pem)
        stream = trio.SSLStream(raw, context, server_hostname="127.0.0.1", https_compatible=True)
        await stream.send_all(server.upgrade())
        with trio.fail_after(30):
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 101")
            await stream.send_all(frame(b"hello"))
            assert await stream.receive_some() == b"\x81\x015"
