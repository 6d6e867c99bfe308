"""What a daemon tells of itself by the Events extension: to each what is theirs, as the stream of events does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from supervisor.events.kinds import KINDS
from supervisor.host.datadir import DataDir
from tests.scenario.daemon import World
from tests.supervisor.test_events_of_daemon import IDENTITY, SERVERS, doorway

MEMBERS = {name for name, kind in KINDS.items() if kind.audience != "auditors"}


class Follower:
    """Somebody who polls for one kind."""

    def __init__(self, at: World, who: str, kind: str, **arguments: Any) -> None:
        self._at = at
        self._who = who
        self._asked: dict[str, Any] = {"name": kind, "arguments": arguments}
        self.cursor: str | None = None

    async def ask(self) -> Any:
        return await self._at[self._who].rpc("events/poll", **self._asked, cursor=self.cursor)

    async def poll(self) -> list[Any]:
        answer = (await self.ask())["result"]
        assert answer["truncated"] is False
        self.cursor = answer["cursor"]
        events: list[Any] = answer["events"]
        return events


async def types_of(at: World, who: str) -> dict[str, Any]:
    return {each["name"]: each for each in (await at[who].rpc("events/list"))["result"]["events"]}


async def test_a_member_is_listed_what_members_hear_and_an_auditor_all(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        assert (await types_of(at, "ana")).keys() & KINDS.keys() == MEMBERS
        assert (await types_of(at, "cem")).keys() >= KINDS.keys()
        assert (await types_of(at, "operator")).keys() >= KINDS.keys()
        refused = await Follower(at, "ana", "config.refreshed").ask()
        assert refused["error"]["code"] == -32023


async def test_a_credential_hears_by_its_own_role(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        await at.admit("cem", role="member")
        assert (await types_of(at, "cem")).keys() & KINDS.keys() == MEMBERS


async def test_each_hears_what_is_theirs_by_the_schema_that_is_listed(tmp_path: Path, data: DataDir) -> None:
    kind = "mcp.tool.executed"
    async with doorway(tmp_path, data) as at:
        followers = {who: Follower(at, who, kind, server="forge", tool="e*") for who in ("ana", "ben", "cem")}
        for follower in followers.values():
            assert await follower.poll() == []
        async with at["cem"].reading() as all_, at["ana"].reading() as anas:
            for tool in ("echo", "tell"):
                await at["ana"].executed(f"forge:{tool}", text="canary")
            told = await all_.until(kind, server_slug="forge")
            own = await anas.until(kind, server_slug="forge")
        heard = {who: await follower.poll() for who, follower in followers.items()}
        assert {who: [event["data"] for event in events] for who, events in heard.items()} == {
            "ana": [own],
            "ben": [],
            "cem": [told],
        }
        for who in ("ana", "cem"):
            (event,) = heard[who]
            assert event["name"] == kind
            Draft202012Validator((await types_of(at, who))[kind]["payloadSchema"]).validate(event["data"])
        assert "canary" not in json.dumps(heard)


async def test_a_member_does_not_hear_of_a_server_that_others_have(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        followers = {who: Follower(at, who, "mcp.server.updated") for who in ("ana", "ben")}
        for follower in followers.values():
            await follower.poll()
        async with at["cem"].reading() as all_:
            changed = {**SERVERS, "vault": {**SERVERS["vault"], "timeoutMs": 7000}}
            await at.edit(changed, auth="tokens", identity=IDENTITY)
            await all_.until("mcp.server.updated")
        heard = {who: await follower.poll() for who, follower in followers.items()}
        assert [event["data"]["server_slug"] for event in heard["ana"]] == ["vault"]
        assert heard["ben"] == []
