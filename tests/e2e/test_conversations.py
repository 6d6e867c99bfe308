"""What official clients hear and are asked while a server works on their call: HTTP and WebSocket, both eras."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import Daemon, running, stand_in
from tests.e2e.test_clients import LEGACY, MODERN, address, report
from tests.fakes.cutting import cutting

pytestmark = pytest.mark.e2e

QUESTION_S = 0.3
CUTS = (b"notifications/progress", b"elicitation/create")
"""What a connection is cut after, once each."""
CANNOT_ASK = "the client that made this call cannot be asked"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon with a server that tells of its work and asks for a name, and one whose questions soon are too old."""
    hasty = stand_in("talkative", question_timeout_s=QUESTION_S)
    servers = {"talkative": stand_in("talkative"), "hasty": hasty, "memo": stand_in("memo")}
    with running(tmp_path_factory.mktemp("conversations"), servers) as daemon:
        trio.run(daemon.ready)
        yield daemon


def check(found: dict[str, Any], *, unasked: list[str], asked: bool) -> None:
    """What every client has to hear; `unasked` are the levels it hears of without a wish."""
    assert found["logging"] is True
    assert found["worked"] == "worked"
    assert found["progress"] == [0, 1, 2]
    assert found["unasked"] == unasked
    if asked:
        assert found["accept"] == {"action": "accept", "content": {"name": "Ada"}}
        assert found["decline"]["action"] == "decline"
        assert found["too late"] == {"action": "cancel"}
    else:
        for message in ("accept", "decline", "too late"):
            assert found[message] == {"code": -32601, "message": CANNOT_ASK}


@pytest.mark.parametrize("transport", ["http", "websocket", "stdio"])
def test_the_python_client_1_converses(daemon: Daemon, transport: str) -> None:
    url = f"{address(daemon, transport)}/mcp"
    found = report(*environments.client("mcp1_conversation.py"), url, transport)
    check(found, unasked=["info", "error"], asked=True)
    assert found["errors"] == ["error"]


def test_the_python_client_1_goes_on_after_its_connections_were_cut(daemon: Daemon) -> None:
    with cutting(daemon.url, *CUTS) as proxy:
        found = report(*environments.client("mcp1_conversation.py"), f"{proxy.url}/mcp", "http")
    assert proxy.left == []
    check(found, unasked=["info", "error"], asked=True)


@pytest.mark.parametrize("over", ["", "stdio+"])
@pytest.mark.parametrize(("mode", "version"), [("legacy", LEGACY), ("auto", MODERN)])
def test_the_python_client_2_converses(daemon: Daemon, mode: str, version: str, over: str) -> None:
    found = report(*environments.client("mcp2_conversation.py"), f"{over}{daemon.url}/mcp", mode)
    assert found["version"] == version
    check(found, unasked=["info", "error"] if version == LEGACY else [], asked=True)
    assert found["errors"] == ["error"]


@pytest.mark.parametrize(
    ("over", "kind", "era", "cuts"),
    [
        ("", "sdk", "legacy", ()),
        ("", "sdk", "legacy", CUTS),
        ("", "default", "legacy", ()),
        ("", MODERN, "modern", ()),
        ("stdio+", "sdk", "legacy", ()),
        ("stdio+", "default", "legacy", ()),
        ("stdio+", MODERN, "modern", ()),
    ],
)
def test_the_typescript_clients_converse(
    daemon: Daemon, over: str, kind: str, era: str, cuts: tuple[bytes, ...]
) -> None:
    with cutting(daemon.url, *cuts) as proxy:
        found = report(*environments.client("typescript_conversation.cjs"), f"{over}{proxy.url}/mcp", kind)
    assert proxy.left == []
    check(found, unasked=["info", "error"] if era == "legacy" else [], asked=True)
    assert found.get("errors") == (["error"] if era == "legacy" else None)


def test_all_clients_share_one_session_of_a_server(daemon: Daemon) -> None:
    async def play() -> None:
        given = {"name": "execute_mcp_tool", "arguments": {"tool_path": "memo:write", "arguments": {"text": "shared"}}}
        await daemon.within(await daemon.session()).rpc("tools/call", **given)
        other = await daemon.session()
        listed = await daemon.within(other).rpc("resources/list")
        uri = next(each["uri"] for each in listed["result"]["resources"] if "memo" in each["uri"])
        read = await daemon.within(other).rpc("resources/read", uri=uri)
        assert read["result"]["contents"][0]["text"] == "shared"

    trio.run(play)
