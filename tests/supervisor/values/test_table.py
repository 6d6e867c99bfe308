"""ValueTable: a value holds at once and after a restart, for whoever may give it, and is not kept in clear."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from actors.errors import InvalidArguments, SupervisorError, UnknownServer
from actors.kit import Latest
from supervisor.config import parse
from supervisor.identity.people import OPERATOR, Given, Person, Value
from supervisor.identity.tokens import NotKept
from supervisor.servers.deployment import Deployment, deploy
from supervisor.store.records import VALUES, SavedValue
from supervisor.values import table as module
from supervisor.values.table import TooManyValues, UnknownValue, ValueNotTaken, ValuePlace, ValueTable
from tests.fakes.deployments import KEY
from tests.fakes.rows import MemoryRows

SERVERS: dict[str, Any] = {
    "github": {
        "command": "c",
        "args": ["${user:MORE:-}", "${user:FILE:-x}"],
        "env": {
            "TOKEN": "${user:TOKEN}",
            "HOST": "${team:HOST:-h}",
            "LOG": "${user:LOG:-info}",
            "KEY": "${user:KEY:-}",
        },
        "values": {"MORE": {"several": True}, "KEY": {"hidden": True}, "LOG": {"options": ["info", "debug"]}},
    },
    "vault": {"command": "c", "users": ["ana"], "env": {"PIN": "${user:PIN}"}},
    "broken": {"comand": "c"},
    "plain": {"command": "c"},
}
IDENTITY: dict[str, Any] = {
    "users": {"ana": {"role": "admin", "values": {"github": {"LOG": "debug"}}}, "ben": {}, "cem": {}},
    "teams": {"core": {"members": ["ben"], "values": {"github": {"HOST": "x"}}}, "data": {}},
}


class Scene:
    """A table over a disk, and who asks."""

    def __init__(self, disk: MemoryRows[SavedValue] | None = None, key: bytes = b"k" * 32) -> None:
        text = json.dumps({"mcpServers": SERVERS, "supervisor": {"identity": IDENTITY}}, indent=1)
        self.disk = disk or MemoryRows(VALUES)
        self.deployment: Latest[Deployment] = Latest(deploy(parse(text, Path("/x/mcp.json"), {}), key=KEY))
        self.table = ValueTable(self.deployment, self.disk, key)

    async def opened(self) -> Scene:
        await self.table.take(self.disk.kept.values())
        return self

    def person(self, user: str) -> Person:
        person = self.deployment.value.person(user, role="admin", team="")
        assert person is not None
        return person

    async def give(self, who: str, *place: Any, value: Value = "hunter22", locked: bool = False) -> None:
        asker = OPERATOR if who == "operator" else self.person(who)
        await self.table.give(asker, ValuePlace(*place), Given(value=value, locked=locked))

    async def forget(self, who: str, *place: Any) -> None:
        await self.table.forget(OPERATOR if who == "operator" else self.person(who), ValuePlace(*place))

    def env(self, user: str) -> dict[str, str]:
        return self.deployment.value.effective_for("github", self.person(user)).config.env


BENS = ("user", "ben", "github", "TOKEN")


async def test_a_value_holds_at_once_and_after_a_restart_until_it_is_taken_back() -> None:
    scene = await Scene().opened()
    await scene.give("ben", *BENS)
    await scene.give("operator", "team", "core", "github", "LOG", value="debug", locked=True)
    assert scene.env("ben")["TOKEN"] == "hunter22"
    assert scene.env("ben")["LOG"] == "debug"
    assert scene.env("cem")["TOKEN"] == ""
    assert "hunter22" not in repr(scene.disk.kept)
    assert not any(b"hunter22" in row.sealed for row in scene.disk.kept.values())
    later = await Scene(scene.disk).opened()
    assert later.deployment.value.given == scene.deployment.value.given
    with pytest.raises(ValueNotTaken, match="the team core gives LOG of github, and has locked it"):
        await later.give("ben", "user", "ben", "github", "LOG", value="info")
    await later.forget("ben", *BENS)
    assert later.env("ben")["TOKEN"] == ""
    assert len(scene.disk.kept) == 1


async def test_what_was_put_elsewhere_or_under_another_key_does_not_open(caplog: pytest.LogCaptureFixture) -> None:
    scene = await Scene().opened()
    await scene.give("ben", *BENS)
    (row,) = scene.disk.kept.values()
    moved = [
        replace(row, tier="team"),
        replace(row, owner="cem"),
        replace(row, server="plain"),
        replace(row, name="MORE"),
        replace(row, sealed=row.sealed[:-1] + bytes([row.sealed[-1] ^ 1])),
        replace(row, sealed=b""),
    ]
    with caplog.at_level(logging.DEBUG):
        other = Scene()
        await other.table.take(moved)
        assert other.deployment.value.given.stored == {}
        foreign = await Scene(scene.disk, key=b"l" * 32).opened()
        assert foreign.deployment.value.given.stored == {}
    said = [record.getMessage() for record in caplog.records]
    assert [line.split(" values")[0] for line in said] == ["6", "1"]
    assert "hunter22" not in repr(said)
    await foreign.give("ben", *BENS, value="new")
    assert foreign.env("ben")["TOKEN"] == "new", "whoever gives it again has it"


async def test_nothing_is_promised_that_is_not_on_the_disk() -> None:
    scene = await Scene().opened()
    await scene.give("ben", *BENS)
    scene.disk.works = False
    with pytest.raises(NotKept, match="nothing has changed"):
        await scene.give("ben", *BENS, value="other")
    with pytest.raises(NotKept, match="nothing has changed"):
        await scene.give("cem", "user", "cem", "github", "TOKEN")
    with pytest.raises(NotKept, match="nothing has changed"):
        await scene.forget("ben", *BENS)
    assert scene.env("ben")["TOKEN"] == "hunter22"
    assert [*scene.disk.kept] == [BENS]
    scene.disk.works = True
    assert (await Scene(scene.disk).opened()).env("ben")["TOKEN"] == "hunter22"


async def test_one_that_is_given_meanwhile_is_not_taken_back() -> None:
    scene = await Scene().opened()

    async def refuse_once() -> bool:
        scene.disk.secure = scene.disk.flush
        await scene.give("ben", *BENS, value="newer")
        return False

    scene.disk.secure = refuse_once
    with pytest.raises(NotKept):
        await scene.give("ben", *BENS, value="older")
    assert scene.env("ben")["TOKEN"] == "newer"


async def test_nothing_is_taken_before_it_is_known_what_there_is() -> None:
    scene = Scene()
    with pytest.raises(NotKept, match="has not read its database yet"):
        await scene.give("ben", *BENS)
    assert scene.disk.kept == {}


@pytest.mark.parametrize(
    ("who", "place", "value", "error", "words"),
    [
        ("ben", ("user", "ben", "githb", "TOKEN"), "x", UnknownServer, "no server 'githb'; did you mean github?"),
        ("ben", ("user", "ben", "vault", "PIN"), "x", UnknownServer, "no server 'vault'; mcpvisor config list"),
        ("ben", ("user", "ben", "valut", "PIN"), "x", UnknownServer, "no server 'valut'; mcpvisor config list"),
        ("ben", ("user", "ben", "github", "TOKN"), "x", UnknownValue, "no value 'TOKN'; did you mean TOKEN?"),
        ("ben", ("user", "ben", "github", "KEY"), "x", UnknownValue, "no value 'KEY'; it takes: MORE, FILE, TOKEN"),
        ("ben", ("user", "ben", "github", "ZZZ"), "x", UnknownValue, "no value 'ZZZ'; it takes: MORE, FILE, TOKEN"),
        ("ben", ("user", "ben", "plain", "X"), "x", UnknownValue, "it takes: none"),
        ("ben", ("user", "ben", "broken", "X"), "x", ValueNotTaken, "mcpvisor check says why"),
        ("ben", ("user", "ben", "github", "HOST"), "x", ValueNotTaken, "a team's to give"),
        ("operator", ("user", "ben", "github", "KEY"), "x", ValueNotTaken, "a team's to give"),
        ("operator", ("user", "zed", "github", "TOKEN"), "x", InvalidArguments, "there is no user 'zed'"),
        ("operator", ("team", "zed", "github", "HOST"), "x", InvalidArguments, "there is no team 'zed'"),
        ("operator", ("team", "core", "github", "HOST"), "x", ValueNotTaken, "the configuration file has HOST, line "),
        ("ana", ("user", "ana", "github", "LOG"), "info", ValueNotTaken, "the configuration file has LOG, line "),
        ("ben", ("user", "ben", "github", "LOG"), "hunter", InvalidArguments, "LOG is one of info, debug"),
        ("ben", ("user", "ben", "github", "TOKEN"), ("x",), InvalidArguments, "TOKEN is one text"),
        ("ben", ("user", "ben", "github", "TOKEN"), "", InvalidArguments, "TOKEN is not empty"),
        ("ben", ("user", "ben", "github", "FILE"), "--hunter", InvalidArguments, 'args[1] begins with "-"'),
        ("ben", ("user", "ben", "github", "MORE"), ("a", "-x"), InvalidArguments, 'args[0] begins with "-"'),
    ],
)
async def test_what_cannot_be_given_says_why_and_changes_nothing(
    who: str, place: Any, value: Value, error: type[SupervisorError], words: str
) -> None:
    scene = await Scene().opened()
    with pytest.raises(error) as raised:
        await scene.give(who, *place, value=value)
    assert words in raised.value.message
    assert "hunter" not in raised.value.message
    assert scene.disk.kept == {}
    assert scene.deployment.version == 0


async def test_a_user_locks_nothing() -> None:
    scene = await Scene().opened()
    with pytest.raises(InvalidArguments, match="a team locks a value"):
        await scene.give("ben", *BENS, locked=True)


@pytest.mark.parametrize(
    ("who", "place", "error", "words"),
    [
        ("ben", ("user", "ben", "vault", "PIN"), UnknownServer, "no server 'vault'"),
        ("ben", ("user", "ben", "github", "TOKEN"), UnknownValue, "nobody gave 'TOKEN' of github for the user ben"),
        ("operator", ("team", "core", "github", "HOST"), ValueNotTaken, "the configuration file has HOST"),
    ],
)
async def test_what_was_not_given_is_not_taken_back(
    who: str, place: Any, error: type[SupervisorError], words: str
) -> None:
    scene = await Scene().opened()
    with pytest.raises(error) as raised:
        await scene.forget(who, *place)
    assert words in raised.value.message


async def test_what_no_server_takes_any_more_can_be_taken_back() -> None:
    scene = await Scene().opened()
    await scene.give("operator", "user", "ben", "vault", "PIN")
    await scene.forget("ben", "user", "ben", "vault", "PIN")
    assert scene.disk.kept == {}


@pytest.mark.parametrize(
    ("bound", "most"), [("_MAX_OF_OWNER", 1), ("_MAX_VALUES", 1), ("_MAX_OWNER_BYTES", 150), ("_MAX_BYTES", 150)]
)
async def test_so_much_is_kept(monkeypatch: pytest.MonkeyPatch, bound: str, most: int) -> None:
    monkeypatch.setattr(module, bound, most)
    scene = await Scene().opened()
    await scene.give("ben", *BENS)
    await scene.give("ben", *BENS, value="another in its place")
    with pytest.raises(TooManyValues, match="as is kept"):
        await scene.give("ben", "user", "ben", "github", "FILE", value="x" * 80)
    if "OWNER" in bound:
        await scene.give("cem", "user", "cem", "github", "FILE", value="x" * 40)
    await scene.forget("ben", *BENS)
    await scene.give("ben", "user", "ben", "github", "LOG", value="info")
