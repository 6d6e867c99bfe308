"""What people do at a daemon leaves exactly one record each, with the right person, and no secret."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from actors.catalogue.marks import digest_of
from supervisor.audit_trail import DIGEST_CHARS
from supervisor.host.datadir import DataDir
from supervisor.identity.tokens import new_token
from supervisor.store.records import DAY_S
from tests.fakes.http_client import META, MODERN, modern_headers
from tests.fakes.mcp_server import FakeServer, tool
from tests.scenario.daemon import World, world

CANARY = "canary-5e1f"
SERVERS: dict[str, Any] = {
    "clock": {
        "command": "x",
        "args": ["--key", f"{CANARY}-argument"],
        "env": {"API_KEY": f"{CANARY}-env"},
        "confirm": ["wind"],
        "tools": {"deny": ["hidden"]},
    },
    "far": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": f"{CANARY}-header"}, "users": ["ana"]},
}
IDENTITY: dict[str, Any] = {"users": {"ana": {"role": "admin"}, "ben": {}}, "teams": {"core": {"members": ["ana"]}}}
NEW: dict[str, Any] = {"name": "new", "entry": {"command": "x", "env": {"K": CANARY}}, "ephemeral": True}
OTHER = {"entry": {"description": CANARY, "idle_timeout_s": 60}}
YES = {"action": "accept", "content": {"run": True}}


def scene(
    directory: Path, data: DataDir, *users: str, clock: Callable[[], float] = time.time, **settings: Any
) -> AbstractAsyncContextManager[World]:
    """A daemon with an audit, to which these are admitted."""
    fakes = {"clock": FakeServer(tools=[tool(name) for name in ("tell", "wind", "hidden")])}
    people = {user: {"role": "admin"} for user in users}
    given = {"auth": "tokens", "identity": IDENTITY, "daemon": {"clock": clock}, **settings}
    return world(directory, data, SERVERS, fakes, people=people, **given)


async def confirmed(at: World, who: str, answer: dict[str, Any]) -> None:
    """Call a tool that needs a yes, and answer the question."""
    meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {"elicitation": {}}}
    params: dict[str, Any] = {"name": "clock__wind", "arguments": {"key": CANARY}, "_meta": meta}
    headers = modern_headers("tools/call", "clock__wind")
    asked = (await at[who].ask("POST", "/mcp/all", headers=headers, json=rpc(params))).json()["result"]
    assert asked["resultType"] == "input_required"
    params |= {"inputResponses": {"confirm": answer}, "requestState": asked["requestState"]}
    await at[who].ask("POST", "/mcp/all", headers=headers, json=rpc(params))


async def confirmed_elsewhere(at: World, who: str, action: str) -> None:
    """Call a tool that needs a yes, as a client that cannot be asked and does not come back; a program answers."""
    await at[who].execute("clock:wind", key=CANARY)
    (question,) = (await at[who].page("/api/questions"))["questions"]
    content = {"content": {"run": True, "remember": "always"}} if action == "accept" else {}
    answer = {"action": action, **content}
    assert (await at[who].ask("POST", f"/api/questions/{question['id']}", json=answer)).status_code == 200


def rpc(params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "call-7", "method": "tools/call", "params": params}


async def refused_again(at: World) -> None:
    """Four times within a minute, or in two."""
    for _ in range(4):
        assert (await at["ben"].ask("GET", "/api/status")).status_code == 404


async def hidden_called(at: World) -> None:
    for name, door in (("clock:hidden", "/mcp"), ("clock__hidden", "/mcp/all"), ("hidden", "/mcp/servers/clock")):
        assert "error" in json.dumps(await at["ben"].at(door).call(name))


async def submitted(at: World, path: str, **fields: str) -> None:
    """Send a form of the dashboard."""
    token = re.findall(r'name="token" value="([^"]+)"', await at["ana"].text("/ui/servers/clock"))[0]
    assert (await at["ana"].ask("POST", path, data={"token": token, **fields})).status_code < 500


ACTIONS: dict[str, tuple[Callable[[World], Awaitable[Any]], list[tuple[str, str, str, str]]]] = {
    "an order": (
        lambda at: at["ana"].ask("POST", "/api/servers/clock/sleep"),
        [("server.sleep", "clock", "done", "ana")],
    ),
    "an order of the operator": (
        lambda at: at.operator.ask("POST", "/api/servers/clock/refresh"),
        [("server.refresh", "clock", "done", "")],
    ),
    "an order for no server": (
        lambda at: at["ana"].ask("POST", "/api/servers/none/restart"),
        [("server.restart", "none", "refused", "ana")],
    ),
    "an order that fails": (
        lambda at: at["ana"].ask("POST", "/api/servers/far/login"),
        [("login.begin", "far", "failed", "ana")],
    ),
    "an order on the dashboard": (
        lambda at: submitted(at, "/ui/servers/clock/sleep"),
        [("server.sleep", "clock", "done", "ana")],
    ),
    "an approval there of what is another tool by now": (
        lambda at: submitted(at, "/ui/changes", server="clock", tool="tell", digest="0" * 64),
        [("tool.approve", "clock", "refused", "ana")],
    ),
    "a value there that no server takes": (
        lambda at: submitted(at, "/ui/values", server="clock", name="NONE", value=CANARY),
        [("value.give", "clock", "refused", "ana")],
    ),
    "a token": (
        lambda at: at["ana"].ask("POST", "/api/access-tokens", json={"user": "ben", "label": CANARY}),
        [("token.create", "", "done", "ana")],
    ),
    "a server more": (
        lambda at: at["ana"].ask("POST", "/api/servers", json=NEW),
        [("configuration.load", "", "done", "ana"), ("server.add", "new", "done", "ana")],
    ),
    "a server that cannot be added": (
        lambda at: at["ana"].ask("POST", "/api/servers", json={"name": "x", "entry": {"comand": CANARY}}),
        [("server.add", "x", "refused", "ana")],
    ),
    "another entry": (
        lambda at: at["ana"].ask("PATCH", "/api/servers/clock", json=OTHER),
        [("configuration.load", "", "done", "ana"), ("server.change", "clock", "done", "ana")],
    ),
    "a server less": (
        lambda at: at.operator.ask("DELETE", "/api/servers/far"),
        [("configuration.load", "", "done", ""), ("server.remove", "far", "done", "")],
    ),
    "a reading that finds nothing new": (lambda at: at["ana"].ask("POST", "/api/reload"), []),
    "a yes": (lambda at: confirmed(at, "ben", YES), [("tool.confirm", "clock:wind", "done", "ben")]),
    "a no": (
        lambda at: confirmed(at, "ben", {"action": "decline"}),
        [("tool.confirm", "clock:wind", "refused", "ben")],
    ),
    "a yes by a program": (
        lambda at: confirmed_elsewhere(at, "ben", "accept"),
        [("tool.confirm", "clock:wind", "done", "ben")],
    ),
    "a no by a program": (
        lambda at: confirmed_elsewhere(at, "ben", "decline"),
        [("tool.confirm", "clock:wind", "refused", "ben")],
    ),
    "a call": (lambda at: at["ben"].at("/mcp/all").call("clock__tell", x=CANARY), []),
    "a page that is read": (lambda at: at["ana"].ask("GET", "/api/status"), []),
}
"""What is done, and the records that it leaves: action, target, outcome, user."""


@pytest.mark.parametrize("what", ACTIONS)
async def test_an_action_leaves_its_record(tmp_path: Path, data: DataDir, what: str) -> None:
    do, expected = ACTIONS[what]
    async with scene(tmp_path, data, "ana", "ben") as at:
        newest = (await at.records())[-1]["id"]
        await do(at)
        records = [record for record in await at.records() if record["id"] > newest]
        left = [(each["action"], each["outcome"], each["user"]) for each in records]
        assert left == [(action, outcome, user) for action, _, outcome, user in expected]
        for record, (_, target, _, _) in zip(records, expected, strict=True):
            assert record["target"] == (target or record["target"])
        for record in records:
            assert record["address"] == "127.0.0.1"
            assert record["role"] == ("member" if record["user"] == "ben" else "admin")
            assert record["principal"] == (f"user:{record['user']}" if record["user"] else "local")
            assert len(record["credential"]) == (12 if record["user"] else len("operator"))
            assert (record["request"] == '"call-7"') is (what in ("a yes", "a no"))
        assert CANARY not in json.dumps(records)


async def test_what_repeats_within_a_minute_shares_a_record(tmp_path: Path, data: DataDir) -> None:
    now = 1_800_000_000.0
    async with scene(tmp_path, data, "ben", clock=lambda: now) as at:
        for shown in ("x", new_token(), f"mcpv_{CANARY}"):
            assert (await at[shown].send("ping")).status_code == 401
        await refused_again(at)
        await hidden_called(at)
        for _ in range(2):  # nobody can be asked
            await at["ben"].at("/mcp/all").call("clock__wind", key=CANARY)
        before = await at.records()
        assert not [
            each for each in before if each["action"] in ("credential.check", "page.ask", "tool.confirm", "tool.refuse")
        ]
    async with scene(tmp_path, data) as at:
        records = [each for each in await at.records() if each["outcome"] == "refused"]
    said = {(each["action"], each["target"], each["user"], each["door"]): each["count"] for each in records}
    assert said == {
        ("credential.check", "", "", ""): 3,
        ("page.ask", "GET /api/status", "ben", "/api/status"): 4,
        ("tool.confirm", "clock:wind", "ben", "/mcp/all"): 2,
        ("tool.refuse", "clock:hidden", "ben", "/mcp"): 1,
        ("tool.refuse", "clock:hidden", "ben", "/mcp/all"): 1,
        ("tool.refuse", "clock:hidden", "ben", "/mcp/servers/clock"): 1,
    }
    assert CANARY not in json.dumps(records)


async def test_records_survive_a_restart_and_are_gone_when_they_are_too_old(tmp_path: Path, data: DataDir) -> None:
    now = 1_800_000_000.0
    async with scene(tmp_path, data, "ben", clock=lambda: now, audit_days=2):
        pass
    async with scene(tmp_path, data, clock=lambda: now + 2 * DAY_S, audit_days=2) as at:
        assert [each["action"] for each in await at.records()] == [
            *("daemon.start", "token.create", "daemon.stop", "daemon.start")
        ]
    async with scene(tmp_path, data, clock=lambda: now + 2.5 * DAY_S, audit_days=2) as at:
        assert [each["action"] for each in await at.records()] == ["daemon.start", "daemon.stop", "daemon.start"]


@pytest.mark.case("I24")
async def test_calls_are_recorded_where_that_is_wanted_and_never_their_arguments(tmp_path: Path, data: DataDir) -> None:
    async with scene(tmp_path, data, "ben", audit_calls=True) as at:
        await at["ben"].executed("clock:tell", x=CANARY)
        await at["ben"].at("/mcp/servers/clock").call("tell", x=CANARY)
        records = await at.records(action="tool")
        said = [(each["action"], each["target"], each["user"], each["door"], each["request"]) for each in records]
        assert said == [("tool.call", "clock:tell", "ben", door, "1") for door in ("/mcp", "/mcp/servers/clock")]
        assert CANARY not in json.dumps(records)
        definition = digest_of(tool("tell")).hex()[:DIGEST_CHARS]
        assert [each["detail"].partition(" ms, ")[2] for each in records] == [f"definition sha256 {definition}"] * 2


async def test_the_file_is_recorded_by_its_digest_with_who_wanted_it_read(tmp_path: Path, data: DataDir) -> None:
    async with scene(tmp_path, data) as at:
        file = at.path
        text = file.read_text()
        file.write_text(text.replace('"wind"', '"none"'))
        assert (await at.reload())["outcome"] == "applied"
        file.write_text(text.replace('"confirm"', f'"{CANARY}"'))
        for _ in range(2):
            await at.reload(422)
        start, applied, refused = await at.records()
        assert (applied["outcome"], applied["target"], applied["credential"]) == ("done", str(file), "operator")
        assert applied["detail"].startswith("for an order; sha256 ")
        assert applied["detail"].endswith(": 1 server changed (clock)")
        digests = [hashlib.sha256(each.encode()).hexdigest()[:16] for each in (text, text.replace('"wind"', '"none"'))]
        assert f"sha256 {digests[0]}" in start["detail"]
        assert f"sha256 {digests[1]}" in applied["detail"]
        assert (refused["outcome"], refused["detail"]) == ("refused", "for an order; 1 fault")
        assert CANARY not in json.dumps(await at.records())


async def test_a_change_of_the_file_is_recorded_as_what_had_it_read(tmp_path: Path, data: DataDir) -> None:
    async with scene(tmp_path, data, reload_on_change=True, reload_poll_s=0.1) as at:
        at.path.write_text(at.path.read_text().replace('"wind"', '"none"'))
        told = await at.operator.until("/api/audit", lambda told: told["records"], action="configuration")
        (record,) = told["records"]
        assert record["detail"].startswith("for its change; sha256 ")
        assert (record["principal"], record["address"], record["door"]) == ("", "", "")


async def test_where_nobody_is_asked_everybody_is_the_operator(tmp_path: Path, data: DataDir) -> None:
    async with scene(tmp_path, data, auth="none", identity={}) as at:
        assert (await at.ask("POST", "/api/servers/clock/sleep")).status_code == 200
        (record,) = await at.records(action="server")
        assert (record["principal"], record["user"], record["credential"]) == ("local", "", "")
        assert (record["role"], record["address"]) == ("admin", "127.0.0.1")


async def test_what_is_wrong_with_a_question_is_said(tmp_path: Path, data: DataDir) -> None:
    async with scene(tmp_path, data, "ben") as at:
        wrong = {"action": "tokens", "user": "a:b", "since": "yesterday", "before": "0", "limit": "501", "by": "me"}
        said = {"action": "write one of audit", "user": "the name holds", "by": "there is no parameter"}
        for name, value in wrong.items():
            answer = await at.operator.ask("GET", "/api/audit", params={name: value})
            assert answer.status_code == 400
            assert said.get(name, f"'{name}'") in answer.json()["error"]["message"]
        assert (await at["ben"].ask("GET", "/api/audit")).status_code == 404
        assert (await at.operator.status())["audit"] == {"days": 90, "calls": False, "lost": 0}
