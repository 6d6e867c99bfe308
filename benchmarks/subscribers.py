"""Many subscribers in one process, on raw sockets and one `epoll`. Standard library only.

`python subscribers.py`; on stdin one JSON object, the order: `port`, `count`, `upgrade` (text sent first and answered
by an HTTP head, or ""), `setup` (messages, base64, each answered before the next one, or by nothing if it begins with
"!"; `{session}` of the first answer's head is put in), `last` (base64; opens the stream), and maybe `told`, the
notification that counts, which is that of a resource otherwise, and `pause_s`, for which it looks away after each look:
whoever is told is noted so much later at most, and many clients in one process are no load for the daemon beside them,
which would have to wake that for each. Says `{"open": N}` when so many are subscribed: fewer
than `count` if the next one was refused. From then on each line on stdin is answered by one: `begin` by `{}`, after
which it notes who is told, and the time of the change (seconds, monotonic) by `{"late_ms": [...]}`, sorted, as soon as
all were told, or after 30 s.
"""

from __future__ import annotations

import base64
import json
import select
import socket
import sys
import time
from typing import Any

UPDATED = "notifications/resources/updated"
PATIENCE_S = 30.0
WAITS_S = 20.0


class Refused(Exception):
    """The connection was not taken, or its requests were not."""


class Subscriber:
    """One connection that is subscribed."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.told_at: float | None = None
        self._told = order.get("told", UPDATED).encode()
        self._data = b""
        self._socket = socket.create_connection(("127.0.0.1", order["port"]), timeout=WAITS_S)
        self._websocket = bool(order["upgrade"])
        try:
            self._open(order)
        except OSError as error:
            raise Refused(str(error)) from None
        self._socket.setblocking(False)

    def _open(self, order: dict[str, Any]) -> None:
        session = b""
        if self._websocket:
            self._socket.sendall(order["upgrade"].encode())
            self._head(b" 101 ")
        for number, text in enumerate(order["setup"]):
            message = base64.b64decode(text.removeprefix("!")).replace(b"{session}", session)
            self._socket.sendall(message)
            if text.startswith("!"):
                continue
            if self._websocket:
                self._frame()
                continue
            head = self._head(b" 20")
            length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
            self._exactly(int(length or 0))
            if number == 0:
                session = head.lower().partition(b"\r\nmcp-session-id:")[2]
                session = head[len(head) - len(session) :].partition(b"\r\n")[0].strip()
        if order["last"]:
            self._socket.sendall(base64.b64decode(order["last"]).replace(b"{session}", session))
            self._head(b" 200 ")

    def fileno(self) -> int:
        """Return the descriptor, for `epoll`."""
        return self._socket.fileno()

    def read(self) -> bool:
        """Take what came, and note when the first change was told; return whether that is now."""
        now = time.monotonic()
        data = self._socket.recv(65536)
        if not data:
            raise SystemExit("a subscriber was closed")
        self._data = (self._data + data)[-2000:]
        if self._told not in self._data:
            return False
        self._data = b""
        if self.told_at is not None:
            return False
        self.told_at = now
        return True

    def _head(self, status: bytes) -> bytes:
        data = b""
        while not data.endswith(b"\r\n\r\n"):
            data += self._exactly(1)
        if status not in data.partition(b"\r\n")[0]:
            raise Refused(data.decode(errors="replace"))
        return data

    def _frame(self) -> None:
        size = self._exactly(2)[1]
        if size >= 126:
            size = int.from_bytes(self._exactly(2 if size == 126 else 8), "big")
        if b'"error"' in self._exactly(size):
            raise Refused("an error")

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise Refused(f"closed after {data!r}")
            data += part
        return data


def opened(order: dict[str, Any]) -> list[Subscriber]:
    """Open so many subscribers, or as many as are taken."""
    subscribers: list[Subscriber] = []
    while len(subscribers) < order["count"]:
        try:
            subscribers.append(Subscriber(order))
        except Refused as refused:
            print(f"after {len(subscribers)}: {refused}", file=sys.stderr)
            break
    return subscribers


def serve(subscribers: list[Subscriber], pause_s: float) -> None:
    """Note who is told, until the input ends."""
    poll = select.epoll()
    by_fd = {each.fileno(): each for each in subscribers}
    for fd in (sys.stdin.fileno(), *by_fd):
        poll.register(fd, select.EPOLLIN)
    changed_at = until = 0.0
    told = 0  # counted as they come: to look at all of them each time would take the processor that the daemon needs
    while True:
        for fd, _ in poll.poll(0.05, len(by_fd) + 1):
            if fd in by_fd:
                told += by_fd[fd].read()
                continue
            line = sys.stdin.readline().strip()
            if not line:
                return
            if line == "begin":
                told = 0
                for each in subscribers:
                    each.told_at = None
                print("{}", flush=True)
            else:
                changed_at, until = float(line), time.monotonic() + PATIENCE_S
        if until and (told == len(subscribers) or time.monotonic() > until):
            late = [each.told_at - changed_at for each in subscribers if each.told_at is not None]
            print(json.dumps({"late_ms": [one * 1000 for one in sorted(late)]}), flush=True)
            until = 0.0
        if pause_s:
            time.sleep(pause_s)  # noqa: TID251 - there is no loop


def main() -> None:
    """Open what was ordered, and serve."""
    order = json.loads(sys.stdin.readline())
    subscribers = opened(order)
    print(json.dumps({"open": len(subscribers)}), flush=True)
    serve(subscribers, order.get("pause_s", 0.0))


if __name__ == "__main__":
    main()
