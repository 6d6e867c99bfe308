"""Signals, clients that hold up the end, and starts that must be refused."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from trio_websocket import ConnectionClosed

from tests.actors.transport.stdio.children import monitor
from tests.e2e.daemons import Daemon, log_of, running, spawn, stand_in, text
from tests.scenario.client import message

pytestmark = pytest.mark.e2e

EXIT_S = 15.0
AT_ONCE_S = 3.0
BIG_BYTES = 8_000_000
BIG_ANSWERS = 4
"""Together far more than the buffers of both ends of a connection hold."""


def narrow(port: int) -> socket.socket:
    """Connect with a small receive window."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(EXIT_S)
    connection.connect(("127.0.0.1", port))
    return connection


def big(id_: int) -> bytes:
    """A call whose answer is big."""
    params = {"name": "growing-big", "arguments": {"size": BIG_BYTES}}
    return json.dumps(message("tools/call", params, id_)).encode()


def masked(payload: bytes) -> bytes:
    """One text frame of a client, masked with zeros."""
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    return b"\x81" + length + b"\0" * 4 + payload


def ask_by_websocket(daemon: Daemon, connection: socket.socket) -> None:
    """Ask for more than the connection holds, and never read it."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ["GET /ws HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
    connection.sendall("\r\n".join(lines).encode())
    assert b" 101 " in connection.recv(1024)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}}
    ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
    connection.sendall(masked(json.dumps(message("initialize", hello)).encode()) + masked(ready))
    connection.sendall(b"".join(masked(big(number)) for number in range(BIG_ANSWERS)))


def ask_by_http(daemon: Daemon, connection: socket.socket, accept: str) -> None:
    """Ask for an answer that is more than the connection holds, and never read it."""
    body = big(1)
    lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}", f"Accept: {accept}"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
    connection.sendall("\r\n".join(lines).encode() + body)


@pytest.mark.case("W03")
@pytest.mark.parametrize("way", ["websocket", "application/json", "text/event-stream"])
async def test_a_client_that_never_reads_does_not_hold_up_the_end(tmp_path: Path, way: str) -> None:
    settings: dict[str, Any] = {} if way == "websocket" else {"drain_s": 1}
    servers = {"growing": stand_in("growing")}
    with running(tmp_path, servers, **settings) as daemon, closing(narrow(daemon.port)) as connection:
        await daemon.ready()
        if way == "websocket":
            await trio.to_thread.run_sync(ask_by_websocket, daemon, connection)
        else:
            await trio.to_thread.run_sync(ask_by_http, daemon, connection, way)
        assert connection.recv(16, socket.MSG_PEEK)  # the answer is on its way
        # The server answers one after the other: when this one comes, the daemon has all the big answers.
        assert text(await daemon.execute("growing:echo", text="all answered")) == "all answered"
        daemon.process.send_signal(signal.SIGTERM)
        assert await daemon.ended(EXIT_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_each_signal_ends_the_daemon_in_order(tmp_path: Path, number: int) -> None:
    async with monitor() as lives:
        with running(
            tmp_path, {"stubborn": stand_in("stubborn", lives.address, stop_eof_s=0.1, stop_term_s=0.1)}
        ) as daemon:
            pulses = await lives.pulses("server", "grandchild")
            await daemon.ready()
            async with daemon.events() as events:
                daemon.process.send_signal(number)
                with pytest.raises(ConnectionClosed):
                    await events.where(lambda event: False)
            assert await daemon.ended(EXIT_S) == 0
            for pulse in pulses.values():
                await pulse.stopped()


async def test_a_call_in_flight_may_still_end(tmp_path: Path) -> None:
    """While the daemon ends, a call that was accepted is answered and new ones are refused."""
    async with monitor() as lives:
        with running(tmp_path, {"growing": stand_in("growing", lives.address)}, drain_s=20, shutdown_s=30) as daemon:
            await daemon.ready()
            answers = []

            async def call() -> None:
                answers.append(await daemon.execute("growing:wait"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                waiting = (await lives.pulses("waiting"))["waiting"]
                async with daemon.events() as events:
                    daemon.process.send_signal(signal.SIGTERM)
                    with suppress(ConnectionClosed):
                        await events.where(lambda event: False)
                await waiting.release()
            assert text(answers[0]) == "released"
            assert await daemon.ended(EXIT_S) == 0


async def test_of_several_calls_of_a_request_each_has_what_is_known_of_it_when_the_time_is_over(tmp_path: Path) -> None:
    async with monitor() as lives:
        servers = {
            "growing": stand_in("growing", lives.address),
            "single": stand_in("growing", lives.address, max_in_flight=1),
        }
        with running(tmp_path, servers, drain_s=0.5) as daemon:
            await daemon.ready()
            answers = []

            async def call() -> None:
                paths = ["growing:echo", "single:hang", "single:echo"]
                calls = [{"tool_path": path, "arguments": {"text": path}} for path in paths]
                answers.append(await daemon.call("execute_mcp_tool", calls=calls))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(call)
                await lives.pulses("hanging")
                daemon.process.send_signal(signal.SIGTERM)
            done, hanging, waiting = answers[0]["result"]["structuredContent"]["results"]
            assert done["text"] == "growing:echo"
            assert [each["structuredContent"]["error"]["outcome"] for each in (hanging, waiting)] == [
                "unknown",
                "not_sent",
            ]
            assert await daemon.ended(EXIT_S) == 0


@pytest.mark.case("D02")
async def test_a_second_signal_ends_everything_at_once(tmp_path: Path) -> None:
    async with monitor() as lives:
        servers = {"growing": stand_in("growing", lives.address), "stubborn": stand_in("stubborn", lives.address)}
        with running(tmp_path, servers, drain_s=60, shutdown_s=90) as daemon:
            pulses = await lives.pulses("server", "grandchild")
            await daemon.ready()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(partial(lost, daemon))
                pulses |= await lives.pulses("hanging")
                async with daemon.events() as events:
                    daemon.process.send_signal(signal.SIGTERM)
                    with suppress(ConnectionClosed):
                        await events.where(lambda event: False)
                assert daemon.process.poll() is None  # it waits for the call
                daemon.process.send_signal(signal.SIGTERM)
                assert await daemon.ended(AT_ONCE_S) == 75
            with trio.fail_after(AT_ONCE_S):
                for pulse in pulses.values():
                    await pulse.stopped()


async def lost(daemon: Daemon) -> None:
    """A call whose answer never comes, because the daemon ends."""
    with pytest.raises(httpx2.TransportError):
        await daemon.execute("growing:hang")


async def refused(directory: Path, listen: str, data_dir: Path) -> str:
    """Start a daemon that must not start; return what it says."""
    with spawn(directory, listen, data_dir) as process:
        try:
            code = await trio.to_thread.run_sync(partial(process.wait, timeout=EXIT_S))
        finally:
            process.kill()
    assert code == 78
    return log_of(directory).read_text()


@pytest.mark.case("D28")
async def test_a_second_daemon_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, {}) as daemon:
        said = await refused(tmp_path, "127.0.0.1:0", tmp_path / "data")
        assert f"another daemon uses this data directory (pid {daemon.process.pid})" in said
        assert (await daemon.ask("GET", "/healthz")).status_code == 200


@pytest.mark.case("D16")
async def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with running(tmp_path, {}) as daemon:
        said = await refused(tmp_path, f"127.0.0.1:{daemon.port}", tmp_path / "other")
        assert "the port is in use" in said
        assert (await daemon.ask("GET", "/healthz")).status_code == 200
