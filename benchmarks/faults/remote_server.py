"""`python -m benchmarks.faults.remote_server PORT LEDGER`: a server over Streamable HTTP that answers as a call says.

The fault server is behind it. Its tool `fault` takes the name of one of `FAULTS` here.
"""

from __future__ import annotations

import json
import sys
from typing import Final

import trio

from tests.fakes import http_faults
from tests.fakes.fault_server import Ledger, Player
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer
from tests.fakes.remote_server import Fault, RemoteServer, Request

FAULTS: Final[dict[str, Fault]] = {
    "status 500": http_faults.status(500),
    "status 502": http_faults.status(502),
    "status 429": http_faults.status(429, retry_after="1"),
    "status 401": http_faults.status(401),
    "status 403": http_faults.status(403),
    "status 404": http_faults.status(404),
    "redirect loop": http_faults.redirect_loop,
    "redirect elsewhere": http_faults.status(307, location=http_faults.ELSEWHERE),
    "reset": http_faults.reset,
    "close": http_faults.close,
    "hang": http_faults.hang,
    "slow headers": http_faults.slow_headers,
    "slow body": http_faults.slow_body,
    "short body": http_faults.short_body,
    "huge": http_faults.huge,
    "gzip bomb": http_faults.gzip_bomb,
    "broken gzip": http_faults.gzip_broken,
    "html": http_faults.body(b"<html>", "text/html"),
    "wrong type": http_faults.wrong_type,
    "no type": http_faults.no_type,
    "no JSON": http_faults.body(b'{"jsonrpc": "2.0", '),
    "empty": http_faults.body(b""),
    "other id": http_faults.other_id,
    "many headers": http_faults.header_flood,
    "garbage": http_faults.raw(b"\x00\xff garbage\r\n\r\n"),
    "interim answers": http_faults.one_hundreds(1000),
    "bad chunk": http_faults.bad_chunk,
    "cookies": http_faults.cookies,
    "events: forms": http_faults.events_forms,
    "events: twice": http_faults.events(None, None),
    "events: cut": http_faults.events(),
    "events: no JSON": http_faults.events(b"data: {nonsense\n\n"),
    "events: flood": http_faults.events_flood,
    "events: endless": http_faults.events_endless,
    "events: trickle": http_faults.events_trickle,
    "events: big line": http_faults.events_big_line,
    "events: question": http_faults.asks,
}
"""What is done instead of answering a call, by name."""
NOT_RUN: Final = ("status ", "redirect ")
"""A server that says so has not begun, so it may be asked again."""


async def main(port: int, path: str) -> None:
    """Serve until killed."""
    ledger = Ledger(path, "remote")

    async def serve(peer: MemoryPeer) -> int:
        player, lines = Player(ledger), Lines(peer)
        while (arrived := await lines.read()) is not None:
            for line in arrived:
                for step in player.take(line):
                    if isinstance(step, bytes):
                        await peer.write(step)
        return 0

    async def called(request: Request) -> None:
        arguments = request.message["params"]["arguments"]
        name = arguments.get("fault", "")
        if not name.startswith(NOT_RUN):
            ledger.note("run", arguments["text"])
        if fault := FAULTS.get(name):
            await fault(request)
        else:
            result = {"content": [{"type": "text", "text": arguments["text"]}]}
            answer = {"jsonrpc": "2.0", "id": request.message["id"], "result": result}
            await request.respond(200, json.dumps(answer).encode())

    async with RemoteServer(serve, {"tools/call": called}).running(port):
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]), sys.argv[2])
