"""A client that waits no longer than it says, whatever comes: each request has its own connection and deadline."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from actors.protocol.agreement.versions import LATEST_LEGACY
from benchmarks.client import ACCEPT, Tool, call, initialize, posted
from benchmarks.faults.subjects import Subject
from benchmarks.faults.verdict import Outcome, outcome

MOST = 4_000_000
"""Bytes of an answer that are read."""
OPEN_S = 20.0
CALL_ID = 71
"""None that the fault server makes up."""


class NoSession(Exception):
    """A session could not be opened."""


class Session:
    """A session of a legacy client at a subject. Raises `NoSession` if there is none within `within_s`."""

    def __init__(self, port: int, subject: Subject, within_s: float = OPEN_S) -> None:
        self.port = port
        self.path = path = subject.path
        self.headers = dict(ACCEPT)
        self._tool = subject.tool
        said, headers = exchange(port, posted(port, path, initialize(), self.headers), 0, within_s)
        if said.kind != "answer":
            raise NoSession(f"{said.kind}: {said.text}")
        self.headers["MCP-Protocol-Version"] = LATEST_LEGACY
        if session := headers.get("mcp-session-id"):
            self.headers["Mcp-Session-Id"] = session
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        exchange(port, posted(port, path, note, self.headers), None, within_s)

    def call(self, tool: Tool, within_s: float, id_: int = CALL_ID) -> Outcome:
        """Call a tool of the server and return what came of it, at most after so many seconds."""
        return exchange(self.port, self.request(tool, id_), id_, within_s)[0]

    def request(self, tool: Tool, id_: int) -> bytes:
        """Return the bytes of a call."""
        return posted(self.port, self.path, call(self._tool(tool), id_, "legacy"), self.headers)


def exchange(port: int, data: bytes, id_: int | None, within_s: float) -> tuple[Outcome, dict[str, str]]:
    """Send these bytes; return what came back within the time, and its headers in lower case.

    `id_` is that of the answer that is waited for; None: what comes first is it.
    """
    begun = time.monotonic()
    late = threading.Event()
    headers: dict[str, str] = {}
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=within_s) as connection:
            timer = threading.Timer(within_s, _hang_up, (connection, late))
            timer.start()
            try:
                said, headers = _talk(connection, data, id_)
            finally:
                timer.cancel()
        if late.is_set() and said[1] is None:
            raise TimeoutError("the answer did not end")
        return outcome(said[0], said[1], time.monotonic() - begun, said[2]), headers
    except (OSError, http.client.HTTPException, ValueError) as error:
        slow = late.is_set() or isinstance(error, TimeoutError)
        return Outcome("nothing" if slow else "cut", repr(error)[:200], time.monotonic() - begun), headers


def _hang_up(connection: socket.socket, late: threading.Event) -> None:
    late.set()
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _talk(connection: socket.socket, data: bytes, id_: int | None) -> tuple[tuple[int, Any, str], dict[str, str]]:
    with suppress(BrokenPipeError, ConnectionResetError):  # who refuses early does not read all, but may have answered
        connection.sendall(data)
    response = http.client.HTTPResponse(connection, method="POST")
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    if id_ is not None and headers.get("content-type", "").startswith("text/event-stream"):
        return (response.status, _event(response, id_), "an event stream"), headers
    body = response.read(MOST)
    try:
        message = json.loads(body)
    except ValueError:
        message = None
    return (response.status, message, body.decode(errors="replace")), headers


def _event(response: http.client.HTTPResponse, id_: int) -> Any:
    """Return the answer that an event stream has. Raises `ConnectionError` if it ends before."""
    while line := response.readline(MOST):
        if line.startswith(b"data:") and line[5:].strip():
            message = json.loads(line[5:])
            if isinstance(message, dict) and message.get("id") == id_ and "method" not in message:
                return message
    raise ConnectionError("the event stream ended without the answer")
