"""The personal address of a server: a URL that opens it as one user, and nothing else."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from mcp import Client
from trio_websocket import ConnectionClosed

from supervisor.host.datadir import DataDir
from supervisor.identity.tokens import new_token
from tests.scenario.daemon import World
from tests.supervisor.test_identity_of_daemon import IDENTITY, SERVERS, doorway

HERE, THERE, NOWHERE = "/i/search/mcp", "/i/clock/mcp", "/i/none/mcp"


async def given(at: World, server: str = "search", user: str = "ben", **more: Any) -> dict[str, Any]:
    """Make a token for one server; `keys` has it under the name of the server."""
    made = await at.order("POST", "/access-tokens", 201, {"user": user, "server": server, **more})
    at.keys[server] = made["token"]
    return dict(made)


async def test_the_official_client_comes_in_by_the_address_alone(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        made = await given(at)
        url = f"{at.url}{made['address']}?token={made['token']}"
        for mode in ("auto", "legacy"):
            async with Client(url, mode=mode) as client:
                tools = (await client.list_tools()).tools
                assert sorted(tool.name for tool in tools) == ["find_page", "read_page"], mode
                called = await client.call_tool("find_page", {"n": 1})
                assert called.structured_content == {"n": 1}, mode


async def test_it_is_shown_by_the_header_too_and_by_one_way_at_a_time(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        token = (await given(at))["token"]
        for who, path, status in (
            ("search", HERE, 200),
            (None, f"{HERE}?token={token}", 200),
            (None, f"{HERE}?x=1&token={token}&y", 200),
            (None, f"/%69/search/mcp?token={token}", 200),
            ("search", f"{HERE}?token={token}", 401),
            (None, f"{HERE}?token={token}&token={token}", 401),
            (None, f"{HERE}?token=", 401),
            (None, f"{HERE}?Token={token}", 401),
            (None, f"{HERE}?token={token}x", 401),
            (None, f"{HERE}?{'a&' * 30}token={token}", 401),
            (None, f"/mcp?token={token}", 401),
            (None, f"/api/status?token={token}", 401),
            (None, f"/i/search/mcp/?token={token}", 401),
            (None, f"/i/search?token={token}", 401),
        ):
            assert (await at[who].at(path).send("ping")).status_code == status, path


PLACES = [HERE, THERE, NOWHERE, "/i/vault/mcp", "/mcp", "/mcp/all", "/mcp/servers/search", "/api/status", "/api/audit"]
SHOWN = ["search", "of nobody", "ben", "expired", "operator"]
"""A token for the server, of nobody, for everything of ben, one that has expired, and the key of the operator."""


async def test_it_opens_its_address_alone_and_no_other_credential_does(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS, "ben") as at:
        at.keys |= {"of nobody": new_token(), "expired": (await given(at, expires_in_s=0.001))["token"]}
        await given(at)
        answered = {
            (who, place): (await at[who].at(place).send("ping")).status_code for who in SHOWN for place in PLACES
        }
        opened = {way for way, status in answered.items() if status not in (401, 429)}
        of_everything = {place for place in PLACES if not place.startswith("/i/")}
        assert opened == {("search", HERE), *((who, place) for who in ("ben", "operator") for place in of_everything)}


async def test_what_is_wrong_is_answered_alike_wherever_it_is_and_whatever_is_there(
    tmp_path: Path, data: DataDir
) -> None:
    async with doorway(tmp_path, data) as at:
        await given(at, "clock")
        answers = set()
        for method in ("POST", "GET", "DELETE", "PUT"):
            for path in (HERE, NOWHERE, "/i/vault/mcp"):
                answer = await at["clock"].ask(method, path, content=b"no json")
                if answer.status_code != 429:
                    answers.add((answer.status_code, answer.headers["www-authenticate"], answer.content))
        assert len(answers) == 1
        assert next(iter(answers))[0] == 401


async def test_a_server_that_is_not_theirs_any_more_is_as_one_that_is_gone(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        await given(at, "search")
        await given(at, "clock")
        assert (await at["search"].at(HERE).send("tools/list")).status_code == 200
        core = {**IDENTITY, "teams": {"core": {"members": ["ana", "ben"]}}}
        servers = {"search": {**SERVERS["search"], "users": ["ana"]}, "vault": SERVERS["vault"]}
        await at.edit(servers, auth="tokens", identity=core)
        answers = [await at[server].at(f"/i/{server}/mcp").send("tools/list") for server in ("search", "clock")]
        assert answers[0].status_code == 404
        assert answers[0].content == answers[1].content
        assert not [name for name in SERVERS if name in answers[0].text]


async def test_its_session_is_unknown_at_other_doors_and_those_of_others_here(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, SERVERS, "ben") as at:
        await given(at)
        doors = {"search": HERE, "ben": "/mcp/servers/search"}
        sessions = {who: await at[who].at(door).session() for who, door in doors.items()}
        for whose, session in sessions.items():
            for who, door in doors.items():
                listed = await at[who].at(door).within(session).send("tools/list")
                assert listed.status_code == (200 if who == whose else 404)


async def test_what_is_open_ends_when_it_is_revoked(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        made = await given(at)
        ended = trio.Event()

        async def listen(*, task_status: trio.TaskStatus[None]) -> None:
            session = await at["search"].at(HERE).session()
            headers = {"accept": "text/event-stream", "mcp-session-id": session}
            path = f"{HERE}?token={made['token']}"
            async with at.http.stream("GET", path, headers=headers, timeout=60) as answer:
                assert answer.status_code == 200
                assert "no-store" in answer.headers["cache-control"]
                task_status.started()
                with suppress(httpx2.HTTPError):
                    async for _ in answer.aiter_bytes():
                        pass
            ended.set()

        async def speak(*, task_status: trio.TaskStatus[None]) -> None:
            async with at.websocket(f"{HERE}?token={made['token']}") as socket:
                task_status.started()
                with pytest.raises(ConnectionClosed):
                    await socket.get_message()

        async with trio.open_nursery() as nursery:
            await nursery.start(listen)
            await nursery.start(speak)
            revoked = await at.order("DELETE", f"/access-tokens/{made['id']}")
            assert revoked["revoked"]["server"] == "search"
            nursery.cancel_scope.deadline = trio.current_time() + 2
            await ended.wait()
        assert not nursery.cancel_scope.cancelled_caught
        assert (await at["search"].at(HERE).send("ping")).status_code == 401


async def test_guessing_is_slow_here_too(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        await given(at)
        statuses = [(await at.at(f"{HERE}?token=x{number}").send("ping")).status_code for number in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        assert (await at["search"].at(HERE).send("ping")).status_code == 200


@pytest.mark.case("W09")
async def test_the_token_of_an_address_is_in_no_text_that_the_daemon_makes(
    tmp_path: Path, data: DataDir, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with doorway(tmp_path, data, SERVERS, "ben") as at:
        token = (await given(at))["token"]
        wrong = new_token()
        shown: list[str] = []
        for each in (token, wrong):
            for method, path in (
                *(("POST", f"{HERE}?token={each}"), ("GET", f"{HERE}?token={each}"), ("PUT", f"{HERE}?token={each}")),
                *(("POST", f"/i/{each}/mcp?token={each}"), ("POST", f"/i/x?token={each}")),
                *(("GET", f"/i/x/y/z?token={each}"), ("POST", f"{HERE}?token={each}&profile={each}")),
            ):
                for who in (None, "ben"):
                    answer = await at[who].ask(method, path, content=b"{}", headers={"host": "127.0.0.1"})
                    shown.append(f"{answer.headers}{answer.text}")
                    assert answer.headers["cache-control"] == "no-store"
                    assert answer.headers["referrer-policy"] == "no-referrer"
        refused = await at.ask("POST", f"{HERE}?token={token}", headers={"host": "evil.example"})
        assert refused.status_code == 421
        shown.append(refused.text)
        pages = ("/api/status", "/api/status/debug", "/api/access-tokens", "/api/audit", "/api/tools")
        shown += [(await at.operator.ask("GET", page)).text for page in pages]
    ours = [
        record for record in caplog.records if record.name.startswith(("supervisor", "actors", "servers", "hypercorn"))
    ]
    shown += [f"{record.getMessage()} {record.args} {record.exc_text}" for record in ours]
    assert len(ours) > 10
    kept = b"".join(file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file())
    for each in (token, wrong):
        secret = each.removeprefix("mcpv_")[:20]
        assert not [text for text in shown if secret in text]
        assert secret.encode() not in kept


async def test_a_token_for_one_server_is_for_one_that_its_user_has(tmp_path: Path, data: DataDir) -> None:
    wrong: dict[str, dict[str, str]] = {
        "ben has no server 'vault'; mcpvisor status lists": {"user": "ben", "server": "vault"},
        "ben has no server 'nowhere'; mcpvisor status lists": {"user": "ben", "server": "nowhere"},
        "there is no user 'ben' in the team 'other'": {"user": "ben", "server": "search", "team": "other"},
        "a token for one server has the role 'member'": {"user": "ana", "server": "search", "role": "admin"},
    }
    async with doorway(tmp_path, data) as at:
        for said, wanted in wrong.items():
            assert said in await at.said("POST", "/access-tokens", 400, wanted)
        assert await at.order("GET", "/access-tokens") == {"tokens": []}


async def test_it_is_known_after_a_restart_and_recorded_with_its_server(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        made = await given(at, label="phone")
        keys = at.keys
        (row,) = (await at.order("GET", "/access-tokens"))["tokens"]
        assert (row["server"], row["role"], row["label"]) == ("search", "member", "phone")
        assert made["address"] == HERE
    async with doorway(tmp_path, data) as at:
        at.keys = keys
        assert (await at["search"].at(HERE).send("ping")).status_code == 200
        records = await at.records(action="token")
        assert [record["detail"] for record in records] == ["member ben at search"]
        assert made["token"] not in json.dumps(records)
