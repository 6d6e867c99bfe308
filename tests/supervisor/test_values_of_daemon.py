"""Values of a daemon by its pages: each person's own, an admin's for all, kept across restarts, and seen nowhere."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from supervisor.host.datadir import DataDir
from supervisor.store.write_behind import WriteBehind
from tests.scenario.daemon import World, world

IN_FILE_USER: Final = "canary-file-user-7fa1"
IN_FILE_TEAM: Final = "canary-file-team-8eb2"
GIVEN_USER: Final = "canary-given-user-9dc3"
GIVEN_TEAM: Final = "canary-given-team-acd4"
IN_ENTRY: Final = "canary-entry-bbe5"
CANARIES: Final = (IN_FILE_USER, IN_FILE_TEAM, GIVEN_USER, GIVEN_TEAM, IN_ENTRY)
"""A secret of every tier; those of an entry stand in env, a header, the address and an argument."""

SERVERS: dict[str, Any] = {
    "github": {
        "command": "x",
        "args": ["--password", IN_ENTRY, "${user:EXTRA:-none}"],
        "env": {
            "TOKEN": "${user:TOKEN}",
            "KEY": "${team:KEY}",
            "PIN": "${user:PIN:-}",
            "SECRET": IN_ENTRY,
            "LOG": "${user:LOG:-info}",
            "HIDDEN": "${user:HIDDEN:-}",
        },
        "values": {"HIDDEN": {"hidden": True}, "LOG": {"options": ["info", "debug"]}},
    },
    "maps": {
        "url": f"https://maps.example/mcp?token={IN_ENTRY}&key=${{user:MAPS_KEY:-}}",
        "headers": {"X-Secret": IN_ENTRY, "Authorization": "Bearer ${user:MAPS_TOKEN}"},
    },
    "diary": {"command": "x", "users": ["ana"], "env": {"PIN": "${user:PIN}"}},
    "clock": {"command": "x"},
}
IDENTITY: dict[str, Any] = {
    "users": {"ana": {"role": "admin"}, "ben": {"values": {"github": {"PIN": IN_FILE_USER}}}, "cem": {}},
    "teams": {
        "core": {"members": ["ana", "ben"], "values": {"github": {"KEY": {"value": IN_FILE_TEAM, "locked": True}}}}
    },
}


def doorway(directory: Path, data: DataDir, **more: Any) -> AbstractAsyncContextManager[World]:
    settings = {"auth": "tokens", "identity": IDENTITY, "show_debug": True, "log_level": "debug", **more}
    return world(directory, data, SERVERS, **settings)


async def put(at: World, who: str | None, place: str, value: Any, **more: Any) -> httpx2.Response:
    return await at[who].ask("PUT", f"/api/values/{place}", json={"value": value, **more})


async def rows(at: World, who: str, **query: str) -> dict[str, dict[str, Any]]:
    values = (await at[who].page("/api/values", **query))["values"]
    return {f"{row['server']}.{row['name']}": row for row in values}


async def test_each_person_gives_and_sees_what_is_their_own(tmp_path: Path, data: DataDir) -> None:
    people = {user: {"role": "admin"} for user in ("ana", "ben")}
    async with doorway(tmp_path, data, people=people) as at:
        assert [*(await rows(at, "ben"))] == [
            *("github.EXTRA", "github.TOKEN", "github.KEY", "github.PIN", "github.LOG", "maps.MAPS_KEY"),
            "maps.MAPS_TOKEN",
        ]
        given = await put(at, "ben", "user/ben/github/TOKEN", GIVEN_USER)
        assert (given.status_code, given.json()) == (
            200,
            {"given": {"tier": "user", "owner": "ben", "server": "github", "name": "TOKEN", "locked": False}},
        )
        shown = await rows(at, "ben", server="github")
        assert (shown["github.TOKEN"]["value"], shown["github.TOKEN"]["kept"]) == ("***", "daemon")
        assert (shown["github.PIN"]["value"], shown["github.PIN"]["kept"]) == ("***", "file")
        assert shown["github.KEY"]["owner"] == "core"
        assert (await put(at, "ben", "user/ben/github/LOG", "debug")).status_code == 200
        assert (await rows(at, "ben", server="github"))["github.LOG"]["value"] == "debug"
        assert (await rows(at, "ana"))["github.TOKEN"]["missing"]
        assert (await rows(at, "ana", user="ben"))["github.TOKEN"]["by"] == "user"
        assert "diary.PIN" in await rows(at, "ana")
        taken = await at["ben"].ask("DELETE", "/api/values/user/ben/github/TOKEN")
        assert taken.json() == {"forgotten": {"tier": "user", "owner": "ben", "server": "github", "name": "TOKEN"}}
        assert (await rows(at, "ben"))["github.TOKEN"]["missing"]


async def test_who_gives_a_value_hears_the_stream_of_events_end_in_order(tmp_path: Path, data: DataDir) -> None:
    """They have another launch from then on, so the stream of before is over: a browser must not call that an error."""
    async with doorway(tmp_path, data, people={"ben": {}}) as at:
        headers = {**at["ben"].headers, "accept": "text/event-stream"}
        async with at.http.stream("GET", "/api/events", headers=headers, timeout=20) as answer:
            parts = answer.aiter_bytes()
            assert await anext(parts)
            assert (await put(at, "ben", "user/ben/github/TOKEN", GIVEN_USER)).status_code == 200
            assert b"event: hello" in b"".join([part async for part in parts])  # raises if it is cut short


async def test_what_is_anothers_is_as_if_it_were_not_there(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, people={"ben": {"role": "admin"}}) as at:
        said = set()
        for place in (
            *("user/ana/github/TOKEN", "user/zed/github/TOKEN", "team/core/github/KEY", "team/zed/github/KEY"),
            *("none/ben/github/TOKEN", "user/ana/diary/PIN", "user/ana/nowhere/PIN"),
        ):
            for method in ("PUT", "DELETE"):
                answer = await at["ben"].ask(method, f"/api/values/{place}", json={"value": "x"})
                said.add((answer.status_code, answer.content))
        queries = ({"user": "ana"}, {"user": "zed"}, {"team": "core"}, {"team": "zed"}, {"user": "ben", "team": "core"})
        for query in queries:
            answer = await at["ben"].ask("GET", "/api/values", params=query)
            said.add((answer.status_code, answer.content))
        assert len(said) == 1
        ((status, page),) = said
        assert (status, page) == (404, (await at["ben"].ask("GET", "/api/no-such-page")).content)
        foreign = await put(at, "ben", "user/ben/diary/PIN", "x")
        none = await put(at, "ben", "user/ben/dairy/PIN", "x")
        assert (foreign.status_code, foreign.text) == (none.status_code, none.text.replace("dairy", "diary"))
        hidden = await put(at, "ben", "user/ben/github/HIDDEN", "x")
        unknown = await put(at, "ben", "user/ben/github/HIDDEM", "x")
        assert (hidden.status_code, hidden.text) == (unknown.status_code, unknown.text.replace("HIDDEM", "HIDDEN"))
        assert (await at["ben"].ask("GET", "/api/values", params={"server": "diary"})).status_code == 404


async def test_an_admin_gives_for_all_and_the_operator_says_for_whom(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        nobody = await at.operator.ask("GET", "/api/values")
        assert nobody.status_code == 400
        assert "say whose values, as the operator has none" in nobody.json()["error"]["message"]
        for query, said in (
            ({"user": "zed"}, "no user 'zed'"),
            ({"team": "zed"}, "no team 'zed'"),
            ({"user": "cem", "team": "core"}, "no user 'cem' in the team 'core'"),
        ):
            assert said in (await at.operator.ask("GET", "/api/values", params=query)).json()["error"]["message"]
        locked = await put(at, "operator", "team/core/github/LOG", "info", locked=True)
        assert locked.json()["given"]["locked"] is True
        refused = await put(at, "operator", "user/ben/github/LOG", "debug")
        assert (refused.status_code, refused.json()["error"]["data"]["type"]) == (409, "refused")
        assert "has locked it" in refused.json()["error"]["message"]
        in_file = await put(at, "operator", "team/core/github/KEY", "x")
        assert "the configuration file has KEY, line 1: " in in_file.json()["error"]["message"]
        shown = await rows(at, "operator", user="ben", team="core")
        assert shown["github.LOG"]["locked"]
        assert "github.HIDDEN" not in shown
        assert (await rows(at, "operator", team="core"))["github.HIDDEN"]["hidden"]
        assert (await put(at, "operator", "user/a:b/github/LOG", "x")).status_code == 400


async def test_a_server_that_waits_for_what_is_hidden_is_named(tmp_path: Path, data: DataDir) -> None:
    own = {"command": "x", "env": {"KEY": "${team:KEY}"}, "values": {"KEY": {"hidden": True}}}
    more: dict[str, Any] = {"waits": False, "people": {"cem": {}}, "auth": "tokens", "identity": IDENTITY}
    async with world(tmp_path, data, {"search": own}, **more) as at:
        answer = await at["cem"].page("/api/values")
        assert (answer["values"], answer["awaiting_team"], answer["user"]) == ([], ["search"], "cem")


async def test_where_nobody_shows_who_they_are_the_key_is_needed(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data, auth="none") as at:
        assert (await put(at, None, "team/core/github/LOG", "info")).status_code == 401
        assert (await put(at, "operator", "team/core/github/LOG", "info")).status_code == 200
        assert (await rows(at, "operator", team="core"))["github.LOG"]["value"] == "info"


async def test_a_body_that_is_none_is_refused(tmp_path: Path, data: DataDir) -> None:
    bodies = ("", "x", "{}", '{"value": 1}', '{"value": null}', '{"value": "a", "secret": true}', '{"value": [1]}')
    async with doorway(tmp_path, data) as at:
        for body in bodies:
            answer = await at.operator.ask("PUT", "/api/values/user/ben/github/TOKEN", content=body)
            assert answer.status_code == 400, body
            assert "the body cannot be used" in answer.json()["error"]["message"], body


async def test_values_outlive_the_daemon(tmp_path: Path, data: DataDir) -> None:
    async with doorway(tmp_path, data) as at:
        assert (await put(at, "operator", "user/ben/github/TOKEN", GIVEN_USER)).status_code == 200
    async with doorway(tmp_path, data) as at:
        assert (await rows(at, "operator", user="ben"))["github.TOKEN"]["kept"] == "daemon"
    (data.root / "values.key").unlink()
    async with doorway(tmp_path, data) as at:
        assert (await rows(at, "operator", user="ben"))["github.TOKEN"]["missing"]


async def test_values_of_a_store_that_opens_late_are_read_then(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doorway(tmp_path, data) as at:
        assert (await put(at, "operator", "user/ben/github/TOKEN", GIVEN_USER)).status_code == 200
    ready = WriteBehind.ready.fget  # type: ignore[attr-defined]  # a property
    late = {"late": True}

    class Later:
        """The event of a store that cannot be used until somebody has asked for a page."""

        def __init__(self, event: Any) -> None:
            self._event = event

        def is_set(self) -> bool:
            return not late["late"] and bool(self._event.is_set())

        async def wait(self) -> None:
            await self._event.wait()
            late["late"] = False

    monkeypatch.setattr(WriteBehind, "ready", property(lambda store: Later(ready(store))))
    async with doorway(tmp_path, data) as at:
        while (await rows(at, "operator", user="ben"))["github.TOKEN"]["missing"]:
            pass
        assert not late["late"]


async def test_a_value_that_cannot_be_kept_is_not_taken(
    tmp_path: Path, data: DataDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doorway(tmp_path, data) as at:
        monkeypatch.setattr(WriteBehind, "state", "degraded")
        answer = await put(at, "operator", "user/ben/github/TOKEN", GIVEN_USER)
        assert (answer.status_code, answer.json()["error"]["data"]["type"]) == (503, "unavailable")
        assert (await rows(at, "operator", user="ben"))["github.TOKEN"]["missing"]
