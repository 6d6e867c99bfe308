"""What remote servers do wrong in chaos: faults of HTTP in the place of an answer, and connections that are torn."""

from __future__ import annotations

import random

from tests.chaos.history import keys_in
from tests.chaos.wires import tear_stream
from tests.chaos.world import World
from tests.fakes import http_faults
from tests.fakes.fault_server import Ledger
from tests.fakes.remote_server import Fault, Request

FAULTS: dict[str, tuple[str, Fault]] = {
    "500": ("H01", http_faults.status(500)),
    "502": ("H01", http_faults.status(502)),
    "429": ("H02", http_faults.status(429, retry_after="1")),
    "404": ("H05", http_faults.status(404)),
    "reset": ("H08", http_faults.reset),
    "close": ("H08", http_faults.close),
    "hang": ("H09", http_faults.hang),
    "short body": ("H09", http_faults.short_body),
    "broken gzip": ("H12", http_faults.gzip_broken),
    "other type": ("H13", http_faults.wrong_type),
    "no type": ("H13", http_faults.no_type),
    "other id": ("H14", http_faults.other_id),
    "many headers": ("H15", http_faults.header_flood),
    "bad chunk": ("H16", http_faults.bad_chunk),
    "flood": ("H24", http_faults.events_flood),
    "forms of events": ("H17", http_faults.events_forms),
    "question": ("H20", http_faults.asks),
    "late": ("H10", http_faults.delay),
}
"""By name, each with the rows of the catalogue that it plays."""
NOT_RUN = frozenset({"500", "502", "429", "404"})
"""A server that says so has not begun; of all others nobody knows, so for them the ledger says that they have."""


def noted(name: str, path: str, server: str) -> Fault:
    """Return a fault that keeps the ledger as the server does in whose place it answers."""
    fault = FAULTS[name][1]

    async def noting(request: Request) -> None:
        if name not in NOT_RUN:
            ledger = Ledger(path, server)
            for key in keys_in(request.body.decode(errors="replace")):
                ledger.note("run", key)
            ledger.close()
        await fault(request)

    return noting


def tear_some(luck: random.Random, world: World) -> None:
    """Tear connections towards one of the remote servers."""
    match luck.choice(("web", "modern", "sse", "socket")):
        case "sse":
            world.sse.cut()
        case "socket":
            for socket in world.socket.sockets[-2:]:
                tear_stream(socket._stream)
        case name:
            server = world.web if name == "web" else world.modern
            for request in server.requests[-20:]:
                tear_stream(request.stream)
