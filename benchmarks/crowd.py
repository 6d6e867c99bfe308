"""`python -m benchmarks.crowd KIND PORT TIMES`: does the worst that a client may do so many times at once.

A process of its own, so that the loop that is measured does nothing for it. It prints `ready`, does it when there is a
line on stdin, and prints `done` with how many answers it got. It goes when stdin ends, and not before the daemon has
noticed: what it leaves behind would otherwise be measured as something else.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.client import Client, call, page, routing, said_each_time
from benchmarks.sender import UPGRADE

ABLE: dict[str, Any] = {"sampling": {}}
DOOR = "/mcp/servers/asker"
SOCKETS, IDLE_S = 150, 25.0
LEFT, GONE_S, LOOK_S = 20, 30.0, 0.05
"""Connections that may be left when a crowd is gone: those of others, and of looking."""
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
ASKED_S = 4.0
STREAMS, EVENTS = 25, 4
URIS, TASKS, SEARCHES, POLLS, ROUNDS = 60, 100, 5, 5, 3
MAX_ANSWER_BYTES = 64 * 1024 * 1024


def samples(port: int) -> int:
    """Make a call that is asked for large samples, and make it again without any answer."""
    message = call(("large", {}), 1, "modern", ABLE)
    message["params"]["_meta"]["progressToken"] = "t"
    with Client(port, "modern", DOOR, ABLE) as client:
        for number in range(ROUNDS):
            _, body = client.post(message, {**client.headers, **routing(("large", {}), "modern")})
            answer = msgspec.json.decode(body.strip().rpartition(b"data: ")[2])
            state = answer.get("result", {}).get("requestState")
            if state is None:
                return number
            message["params"] |= {"requestState": state, "inputResponses": {}}
    return ROUNDS


def asks(port: int) -> int:
    """Make a call that is asked for many samples, answer none of them, and go away."""
    with Client(port, "legacy", DOOR, ABLE) as client:
        message = call(("many", {}), 1, "legacy")
        message["params"]["_meta"] = {"progressToken": "t"}
        response = client.open(message, client.headers)
        end, asked = time.monotonic() + ASKED_S, 0
        while time.monotonic() < end and asked < SOCKETS:
            asked += b"sampling/createMessage" in response.readline()
    return asked


def searches(port: int) -> int:
    """Search for what shows a schema whose references cost much."""
    with Client(port) as client:
        for _ in range(SEARCHES):
            client.call(("discover_mcp_tools", {"query": "unfold the winding catacomb", "limit": 1}))
    return SEARCHES


def subscriptions(port: int) -> int:
    """Subscribe to resources with long addresses."""
    with Client(port, "legacy", DOOR) as client:
        for number in range(URIS):
            uri = f"file:///{threading.get_ident()}/{number}/" + "a" * 4000
            message = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": uri}}
            client.post(message, client.headers)
    return URIS


def tasks(port: int) -> int:
    """Make tasks and leave them alone."""
    with Client(port, "legacy", DOOR) as client:
        message = call(("later", {}), 1, "legacy")
        message["params"]["task"] = {"ttl": 600_000}
        for _ in range(TASKS):
            client.post(message, client.headers)
    return TASKS


def streams(port: int) -> int:
    """Read all events that are kept on many streams at once, each of which asks for them with a cursor of no use."""
    meta = {"_meta": said_each_time()}
    wanted = {"name": "asker:large", "arguments": {}, **meta}
    message = {"jsonrpc": "2.0", "id": 1, "method": "events/stream", "params": {**wanted, "cursor": "none"}}
    with contextlib.ExitStack() as clients:
        opened = [clients.enter_context(Client(port, "modern")) for _ in range(STREAMS)]
        responses = [each.open(message, {**each.headers, "Mcp-Method": "events/stream"}) for each in opened]
        return sum(_events(response) for response in responses)


def _events(response: http.client.HTTPResponse) -> int:
    """Return how many events were read of a stream until all were there."""
    read = 0
    while read < EVENTS and (line := response.readline()):
        read += b'"eventId"' in line
    return read


def polls(port: int) -> int:
    """Ask how all servers are doing."""
    return sum(bool(page(port, "/api/status")) for _ in range(POLLS))


def opened(port: int) -> list[socket.socket]:
    """Open WebSockets."""
    sockets = []
    for _ in range(SOCKETS):
        sockets.append(socket.create_connection(("127.0.0.1", port)))
        sockets[-1].sendall(UPGRADE.format(port=port).encode())
        sockets[-1].recv(4096)
    return sockets


def stay(_: int, sockets: list[socket.socket]) -> int:
    """Say nothing."""
    time.sleep(IDLE_S)  # noqa: TID251 - a program of its own, without a loop
    return len(sockets)


def speak(_: int, sockets: list[socket.socket]) -> int:
    """Ask something on each at once; return how many are answered."""
    for each in sockets:
        each.sendall(b"\x81" + bytes([0x80 | len(PING)]) + bytes(4) + PING)
    return sum(bool(each.recv(4096)) for each in sockets)


def leave(port: int, sockets: list[socket.socket]) -> int:
    """Close all, as the end of a process does, and wait until they are gone; return how many."""
    for each in sockets:
        each.close()
    end = time.monotonic() + GONE_S
    while (left := page(port, "/api/status/debug")["connections"]["open"]) > LEFT and time.monotonic() < end:
        time.sleep(LOOK_S)  # noqa: TID251 - a program of its own, without a loop
    return len(sockets) if left <= LEFT else 0


SOCKET_KINDS: dict[str, Callable[[int, list[socket.socket]], int]] = {
    each.__name__: each for each in (stay, speak, leave)
}
KINDS: dict[str, Callable[[int], int]] = {
    each.__name__: each for each in (samples, asks, searches, subscriptions, tasks, streams, polls)
}


def together(times: int, work: Callable[[], int]) -> int:
    """Do something so many times at once; return the sum."""
    counts: list[int] = []

    def one() -> None:
        with contextlib.suppress(OSError, http.client.HTTPException, RuntimeError):
            counts.append(work())

    threads = [threading.Thread(target=one) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts)


def main() -> None:
    """Be ready, wait, do it, and go."""
    kind, port, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sockets: list[socket.socket] = []

    def open_some() -> int:
        sockets.extend(opened(port))
        return 0

    if kind in SOCKET_KINDS:
        together(times, open_some)
    print("ready", flush=True)
    sys.stdin.readline()
    done = SOCKET_KINDS[kind](port, sockets) if sockets else together(times, lambda: KINDS[kind](port))
    print(f"done {done}", flush=True)
    sys.stdin.read()
    leave(port, sockets)


if __name__ == "__main__":
    main()
