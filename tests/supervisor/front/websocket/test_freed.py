"""What a WebSocket of MCP consisted of is freed when it is over, without a search for garbage."""

from __future__ import annotations

from supervisor.front.websocket import OutgoingQueue, SocketSession
from tests.fakes.front_server import until
from tests.fakes.garbage import no_search
from tests.supervisor.front.websocket.test_websocket import front


async def test_a_connection_that_is_over_is_freed_without_a_search() -> None:
    async with front() as server:
        with no_search() as alive:
            async with server.connect() as peer:
                await peer.initialize()
                await peer.initialized()
                assert alive(SocketSession, OutgoingQueue) == 2
            await until(lambda: server.server.counters.open == 0)
            assert alive(SocketSession, OutgoingQueue) == 0
