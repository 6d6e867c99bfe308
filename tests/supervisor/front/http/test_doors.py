"""Several doors over HTTP: each has its own sessions, requests and streams."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import ServerStarting
from supervisor.config import Settings
from supervisor.front.http.endpoint import McpHttp
from supervisor.front.http.sessions import Sealer
from supervisor.service.doors.addresses import door_of, path_of, personal_path, personal_server
from supervisor.service.drain import RequestDrain
from tests.fakes.http_client import JSON_HEADERS, Exchange, fetch, legacy, modern, modern_headers, opened
from tests.fakes.service import FakeService, SomeDoors, forever, raising, returning

STREAM = {"accept": "text/event-stream"}


class Doors(SomeDoors):
    """Three doors; two names mean the second one."""

    def __init__(self) -> None:
        self.services = [FakeService(name=returning(b'{"n":%d}' % number)) for number in range(3)]
        super().__init__(dict(zip(("", "second", "third"), self.services, strict=True)))
        self.doors["2nd"] = self.doors["second"]


class Front:
    """The application and what is behind it."""

    def __init__(self, closing: trio.Event | None = None) -> None:
        self.doors = Doors()
        self.drain = RequestDrain(self.doors.services[0], trio.Event() if closing is None else closing)
        self.app = self.started_again()

    def started_again(self) -> McpHttp:
        settings = Settings()
        self.app = McpHttp(self.drain, sealer=Sealer(b"k" * 32), settings=settings, doors=self.doors)
        return self.app

    async def post(self, path: str, body: bytes, session: str = "", headers: Any = JSON_HEADERS) -> Exchange:
        more = {"mcp-session-id": session} if session else {}
        return await fetch(self.app, "POST", {**headers, **more}, body, path=path)

    async def initialize(self, path: str) -> str:
        answer = await self.post(path, legacy("initialize", {"protocolVersion": "2025-11-25"}))
        return answer.headers["mcp-session-id"]


def test_a_path_names_a_door() -> None:
    assert door_of("/mcp") == ""
    assert door_of("/mcp/servers/a b") == "servers/a b"
    assert door_of("/mcp/") == ""
    assert [door_of(path) for path in ("/", "/mcpx", "/ws", "")] == [None] * 4


async def test_a_path_leads_to_its_door_in_both_eras() -> None:
    front = Front()
    for path, number in (("/mcp", 0), ("/mcp/second", 1), ("/mcp/2nd", 1), ("/mcp/third", 2)):
        session = await front.initialize(path)
        assert (await front.post(path, legacy("name"), session)).json["result"] == {"n": number}
        assert (await front.post(path, legacy("name"))).json["result"] == {"n": number}
        answer = await front.post(path, modern("name"), headers=modern_headers("name"))
        assert answer.json["result"] == {"n": number}


async def test_a_session_is_known_at_its_door_alone_also_after_a_restart() -> None:
    front = Front()
    sessions = {path: await front.initialize(path) for path in ("/mcp", "/mcp/second", "/mcp/third")}
    for _ in range(2):
        for path, session in sessions.items():
            for other in sessions:
                assert (await front.post(other, legacy("name"), session)).status == (200 if other == path else 404)
        front.started_again()
    for path, session in sessions.items():
        for other in sorted(sessions, key=lambda other: other == path):
            ended = await fetch(front.app, "DELETE", {"mcp-session-id": session}, path=other)
            assert ended.status == (204 if other == path else 404)


async def test_two_names_of_one_door_share_its_sessions() -> None:
    front = Front()
    session = await front.initialize("/mcp/second")
    assert (await front.post("/mcp/2nd", legacy("name"), session)).status == 200


async def test_a_stream_tells_what_changed_behind_its_door() -> None:
    front = Front()
    session = await front.initialize("/mcp/second")
    headers = {**STREAM, "mcp-session-id": session}
    async with opened(front.app, "GET", headers, path="/mcp/third") as elsewhere:
        await elsewhere.end()
        assert elsewhere.status == 404
    async with opened(front.app, "GET", headers, path="/mcp/second") as stream:
        front.doors.services[0].change(tools=1)
        front.doors.services[2].change(resources=1)
        front.doors.services[1].change(prompts=1)
        assert (await stream.event())["method"] == "notifications/prompts/list_changed"


async def test_a_subscription_tells_what_changed_behind_its_door() -> None:
    front = Front()
    wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    body, headers = modern("subscriptions/listen", wanted), modern_headers("subscriptions/listen")
    async with opened(front.app, "POST", headers, body, path="/mcp/third") as stream:
        assert (await stream.event())["method"] == "notifications/subscriptions/acknowledged"
        front.doors.services[1].change(tools=1)
        front.doors.services[2].change(prompts=1)
        assert (await stream.event())["method"] == "notifications/prompts/list_changed"


async def test_a_session_begins_only_with_a_result() -> None:
    front = Front()
    front.doors.services[1].behaviours["initialize"] = raising(ServerStarting("not yet", server="a"))
    answer = await front.post("/mcp/second", legacy("initialize", {"protocolVersion": "2025-11-25"}))
    assert (answer.status, answer.json["error"]["data"]["type"]) == (200, "starting")
    assert "mcp-session-id" not in answer.headers
    assert len(front.app.sessions) == 0


async def test_all_doors_end_together() -> None:
    closing = trio.Event()
    front = Front(closing)
    for service in front.doors.services:
        service.behaviours["hang"] = forever
    answers: list[Exchange] = []

    async def ask(path: str) -> None:
        answers.append(await front.post(path, legacy("hang")))

    async with trio.open_nursery() as nursery:
        for path in ("/mcp", "/mcp/second", "/mcp/third"):
            nursery.start_soon(ask, path)
        while sum(len(service.asked) for service in front.doors.services) < 3:
            await trio.lowlevel.checkpoint()
        closing.set()
        front.drain.end()
    assert [answer.json["error"]["data"]["type"] for answer in answers] == ["shutdown"] * 3
    late = await front.post("/mcp/second", legacy("initialize", {"protocolVersion": "2025-11-25"}))
    assert late.json["error"]["data"]["type"] == "shutdown"


async def test_what_served_a_door_that_is_gone_is_not_kept() -> None:
    front = Front()
    for path in ("/mcp", "/mcp/second", "/mcp/third"):
        await front.post(path, legacy("name"))
    assert len(front.app._fronts) == 3
    del front.doors.doors["second"], front.doors.doors["2nd"]
    assert (await front.post("/mcp/second", legacy("name"))).status == 404
    assert sorted(door.name for door in front.app._fronts) == ["", "third"]


@given(server=st.text(min_size=1, max_size=30))
def test_a_personal_address_leads_to_its_server_and_to_no_other_door(server: str) -> None:
    path = unquote(personal_path(server))
    assert (personal_server(path), door_of(path)) == (server, f"i/{server}")
    assert personal_server(unquote(path_of(server))) == ""


@pytest.mark.parametrize("path", ["/i/mcp", "/i//mcp", "/i/a", "/i/a/mcp/", "/I/a/mcp", "/mcp/i/a/mcp", "i/a/mcp", ""])
def test_what_is_nearly_a_personal_address_is_none(path: str) -> None:
    assert personal_server(path) == ""
