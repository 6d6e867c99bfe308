"""Skills (SEP-2640): listed, found, read and checked at every door, before servers of both eras."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from actors.life.states import State
from actors.protocol.agreement.versions import Era
from actors.protocol.listing import SKILLS
from supervisor.host.workbench import SMALL_BYTES
from supervisor.service.client import Client
from tests.fakes.exchanges import LEGACY, MODERN
from tests.fakes.published import Served, served
from tests.fakes.skill_server import FILES, REFUNDS, SkillServer, entry, file, manifest
from tests.fakes.whole_server import WholeServer

CLIENTS: dict[Era, Client] = {"legacy": LEGACY, "modern": MODERN}
MANIFEST = f"{REFUNDS}/SKILL.md"
HERE = f"mcp://desk/{REFUNDS}"
"""The same at the doors of many servers."""

METHODS = ("skills/list", "skills/get", "resources/directory/read")

clients = pytest.mark.parametrize("era", ["legacy", "modern"])
many = pytest.mark.parametrize("path", ["", "all"])


class Rig:
    """The doors and the server `desk` behind them."""

    def __init__(self, running: Served, desk: SkillServer) -> None:
        self.running = running
        self.desk = desk

    async def ask(self, path: str, client: Client, method: str, **params: Any) -> Any:
        return await self.running.ask(method, client, path, **params)

    async def result(self, path: str, client: Client, method: str, **params: Any) -> Any:
        return await self.running.result(method, client, path, **params)

    async def tool(self, name: str, **arguments: Any) -> Any:
        return await self.result("", LEGACY, "tools/call", name=name, arguments=arguments)

    async def rows(self, query: str, **more: Any) -> Any:
        return (await self.tool("discover_mcp_tools", query=query, kinds=["skill"], **more))["structuredContent"]


@asynccontextmanager
async def rig(era: Era = "legacy", also: Mapping[str, WholeServer] | None = None, **desk: Any) -> AsyncIterator[Rig]:
    server = SkillServer(era, **desk)
    async with served({"desk": server, **(also or {})}, era=era) as running:
        server.asked.clear()
        yield Rig(running, server)


# The door of one server -----------------------------------------------------------------------------------------------


@clients
async def test_at_its_own_door_a_server_is_asked_and_answers_as_it_is(era: Era) -> None:
    async with rig(era) as it:
        client, door = CLIENTS[era], "servers/desk"
        greeting = await it.result(door, client, "initialize" if era == "legacy" else "server/discover")
        assert greeting["capabilities"]["extensions"] == {SKILLS: {"directoryRead": True}}
        assert await it.result(door, client, "skills/list") == it.desk._result("skills/list", {})
        assert await it.result(door, client, "skills/get", uri=MANIFEST) == it.desk._result(
            "skills/get", {"uri": MANIFEST}
        )
        listed = await it.result(door, client, "resources/directory/read", uri=f"{REFUNDS}/examples")
        assert listed["resources"] == [{"uri": f"{REFUNDS}/examples/email.md", "name": "email.md"}]
        assert (await it.ask(door, client, "skills/get", uri="skill://x/SKILL.md"))["error"]["code"] == -32602
        assert it.desk.methods() == ["skills/list", "skills/get", "resources/directory/read", "skills/get"]


async def test_across_the_eras_a_result_says_for_how_long_it_holds_where_it_has_to() -> None:
    async with rig("legacy") as it:
        for method in METHODS:
            told = await it.result("servers/desk", MODERN, method, uri=MANIFEST)
            assert (told["resultType"], told["ttlMs"], told["cacheScope"]) == ("complete", 0, "private")
    async with rig("modern") as it:
        for method in METHODS:
            told = await it.result("servers/desk", LEGACY, method, uri=MANIFEST)
            assert not told.keys() & {"resultType", "ttlMs", "cacheScope"}


@clients
async def test_while_it_sleeps_its_skills_are_listed_as_they_are_known(era: Era) -> None:
    async with rig(era) as it:
        await it.running.sleep("desk")
        assert (await it.result("servers/desk", CLIENTS[era], "skills/list"))["skills"] == it.desk.listed
        assert it.running.registry.statuses.value["desk"].state is State.DORMANT


async def test_an_entry_that_is_none_costs_a_client_no_other() -> None:
    broken = {**entry("skill://broken", FILES), "resources": [{"uri": "skill://broken/SKILL.md"}]}
    async with rig(listed=[broken, entry(files=FILES)]) as it:
        for door in ("servers/desk", "all"):
            assert len((await it.result(door, LEGACY, "skills/list"))["skills"]) == 1
        assert "skill 1" in it.running.gateway.parts.catalogue.value.entries["desk"].offer.problems[0]


# The doors of many servers --------------------------------------------------------------------------------------------


@many
@clients
async def test_skills_of_all_servers_are_listed_under_names_of_their_own_with_all_of_their_files(
    path: str, era: Era
) -> None:
    client = CLIENTS[era]
    async with rig(era, {"other": SkillServer(era), "none": WholeServer(era)}) as it:
        greeting = await it.result(path, client, "initialize" if era == "legacy" else "server/discover")
        assert greeting["capabilities"]["extensions"][SKILLS] == {"directoryRead": True}
        told = await it.result(path, client, "skills/list")
        assert ("ttlMs" in told) is (era == "modern")
        one, other = told["skills"]
        assert (one["uri"], other["uri"]) == (f"{HERE}/SKILL.md", f"mcp://other/{MANIFEST}")
        assert one["frontmatter"] == entry()["frontmatter"]
        assert one["resources"] == [file(f"{HERE}/{name}", data) for name, data in FILES.items()]
        for each in one["resources"]:
            (content,) = (await it.result(path, client, "resources/read", uri=each["uri"]))["contents"]
            assert content["uri"] == each["uri"]


@many
@clients
async def test_one_that_is_not_listed_is_got_by_its_uri(path: str, era: Era) -> None:
    client = CLIENTS[era]
    async with rig(era, listed=[], unlisted=[entry("skill://new", {"SKILL.md": b"a"}), entry("skill://live")]) as it:
        assert (await it.result(path, client, "skills/list"))["skills"] == []
        got = await it.result(path, client, "skills/get", uri="mcp://desk/skill://new/SKILL.md")
        assert got["skill"] == entry("mcp://desk/skill://new", {"SKILL.md": b"a"})
        assert ("cacheScope" in got) is (era == "modern")
        got = await it.result(path, client, "skills/get", uri="mcp://desk/skill://live/SKILL.md")
        assert got["skill"]["resources"] == "dynamic"
        refused = (await it.ask(path, client, "skills/get", uri="mcp://desk/skill://not/SKILL.md"))["error"]
        assert refused["code"] == -32602


@many
async def test_a_directory_is_read_under_the_names_of_the_door(path: str) -> None:
    for era, client in CLIENTS.items():
        async with rig(era) as it:
            listed = await it.result(path, client, "resources/directory/read", uri=f"{HERE}/examples")
            assert listed["resources"] == [{"uri": f"{HERE}/examples/email.md", "name": "email.md"}]
            assert ("ttlMs" in listed) is ("cacheScope" in listed) is (era == "modern")


@many
async def test_directories_are_announced_only_where_all_that_have_skills_can_read_them(path: str) -> None:
    async with rig(also={"other": SkillServer(directory_read=False)}) as it:
        assert (await it.result(path, LEGACY, "initialize"))["capabilities"]["extensions"] == {SKILLS: {}}
    async with served({"none": WholeServer()}) as running:
        said = (await Rig(running, SkillServer()).result(path, LEGACY, "initialize"))["capabilities"]
        assert SKILLS not in said["extensions"]


@pytest.mark.parametrize("wrong", [entry("skill://else", FILES), {**entry(), "resources": 5}, "text", None])
async def test_an_answer_that_is_not_the_skill_is_the_servers_fault(wrong: Any) -> None:
    async with rig(listed=[]) as it:
        it.desk.unlisted = [{"uri": MANIFEST}]
        it.desk._result = lambda method, params: {"skill": wrong}  # type: ignore[method-assign]
        refused = (await it.ask("all", LEGACY, "skills/get", uri=f"{HERE}/SKILL.md"))["error"]
        assert refused["data"]["type"] == "protocol"


# The door of the meta-tools -------------------------------------------------------------------------------------------


async def test_a_skill_is_found_by_what_it_does_and_listed_and_read() -> None:
    others = [entry(f"skill://{name}", description=f"Do {name} well.") for name in ("gardening", "sailing")]
    async with rig(listed=[*others, entry(files=FILES)]) as it:
        found = await it.rows("refund a customer")
        (row, *_) = found["tools"]
        assert row == {
            "kind": "skill",
            "server_name": "desk",
            "name": "refunds",
            "uri": f"desk|{MANIFEST}",
            "description": "Refund a customer by the rules.",
            "relevance_score": row["relevance_score"],
        }
        listed = await it.rows("*")
        assert [each["name"] for each in listed["tools"]] == ["refunds", "gardening", "sailing"]
        assert not [
            each
            for each in (await it.tool("discover_mcp_tools", query="*"))["structuredContent"]["tools"]
            if "kind" in each
        ]
        read = await it.tool("read_mcp_resource", uri=row["uri"])
        assert [block["text"] for block in read["content"]] == [
            "[file of a skill, as server 'desk' wrote it]",
            FILES["SKILL.md"].decode(),
        ]
        assert read["structuredContent"]["contents"][0]["uri"] == row["uri"]


async def test_a_row_says_how_the_tools_are_that_a_skill_names() -> None:
    named = {"allowed-tools": "Bash(git:*) Read tool1 other:tool2 mcp__other__tool3 other:gone refund down:tool0"}
    async with rig(listed=[entry(REFUNDS, None, **named)], also={"other": WholeServer(), "down": WholeServer()}) as it:
        it.running.report("down", State.FAILED)
        await wait_all_tasks_blocked()
        row = (await it.rows("refund a customer"))["tools"][0]
        assert row["tools"] == {
            "desk:tool1": "usable",
            "other:tool2": "usable",
            "other:tool3": "usable",
            "other:gone": "missing",
            "refund": "missing",
            "down:tool0": "not usable now",
        }


# What is read ---------------------------------------------------------------------------------------------------------


async def refused(it: Rig, name: str) -> Any:
    """Read a file in both ways; return the error if both are refused alike, as the same of a model's read."""
    native = await it.ask("", LEGACY, "resources/read", uri=f"{HERE}/{name}")
    shown = await it.tool("read_mcp_resource", uri=f"desk|{REFUNDS}/{name}")
    if "error" not in native:
        assert not shown.get("isError")
        return None
    assert shown["isError"]
    assert native["error"]["message"] in shown["content"][0]["text"]
    return native["error"]


@clients
async def test_what_differs_from_what_is_listed_is_not_shown(era: Era) -> None:
    async with rig(era) as it:
        for name, data in FILES.items():
            assert await refused(it, name) is None
            for other in (data + b"\n", data[:-1] + b"x"):
                it.desk.given[f"{REFUNDS}/{name}"] = other
                error = await refused(it, name)
                assert error["data"]["type"] == "mismatch"
                assert error["data"]["outcome"] == "completed"
                assert error["data"]["skill"] == MANIFEST
                assert data.decode(errors="replace") not in json.dumps(error)


async def test_a_name_may_be_percent_encoded_or_not() -> None:
    files = {"SKILL.md": manifest(), "a%20b.md": b"b"}
    given = {f"{REFUNDS}/{name}": data for name, data in (*files.items(), ("a b.md", b"b"))}
    async with rig(listed=[entry(files=files)], given=given) as it:
        assert await refused(it, "a b.md") is None
        assert await refused(it, "a%20b.md") is None


async def test_a_file_that_the_skill_does_not_list_is_none_of_it() -> None:
    async with rig() as it:
        it.desk.given |= {f"{REFUNDS}/hidden.sh": b"rm", "skill://billing/free.md": b"free"}
        assert (await refused(it, "hidden.sh"))["data"]["type"] == "mismatch"
        read = await it.result("", LEGACY, "resources/read", uri="mcp://desk/skill://billing/free.md")
        assert read["contents"][0]["text"] == "free"


async def test_a_skill_that_changed_since_it_was_listed_is_read_by_its_newest_entry() -> None:
    async with rig() as it:
        newest = {**FILES, "SKILL.md": manifest(text="new"), "more.md": b"more"}
        it.desk.listed = [entry(files=newest)]
        it.desk.given = {f"{REFUNDS}/{name}": data for name, data in newest.items()}
        for name in newest:
            assert await refused(it, name) is None
        it.desk.listed = []
        assert (await refused(it, "more.md"))["data"]["type"] == "mismatch"


@pytest.mark.parametrize("dynamic", [False, True])
async def test_a_skill_that_begins_otherwise_than_its_entry_says_is_not_shown(dynamic: bool) -> None:
    for begins in (manifest("refund"), manifest() + b"x", b"Refund all.", b"---\nname: refunds\n---\n"):
        files = {**FILES, "SKILL.md": begins}
        given = {f"{REFUNDS}/{name}": data for name, data in files.items()}
        async with rig(listed=[entry(files=None if dynamic else files)], given=given) as it:
            error = await refused(it, "SKILL.md")
            if begins.startswith(manifest()):
                assert error is None
            else:
                assert (error["data"]["type"], error["data"]["skill"]) == ("mismatch", MANIFEST)
            assert await refused(it, "examples/email.md") is None


async def test_a_file_of_a_skill_inside_another_one_fits_both() -> None:
    inner = f"{REFUNDS}/inner"
    files = {"SKILL.md": manifest(), "inner/SKILL.md": manifest("inner")}
    given = {f"{REFUNDS}/{name}": data for name, data in files.items()}
    async with rig(listed=[entry(files=files), entry(inner, {"SKILL.md": manifest("inner")})], given=given) as it:
        assert await refused(it, "inner/SKILL.md") is None
        it.desk.listed[0] = entry(files={**files, "inner/SKILL.md": b"other"})
        assert await refused(it, "inner/SKILL.md") is None  # by what was listed
        it.desk.given[f"{inner}/SKILL.md"] = b"other"
        assert (await refused(it, "inner/SKILL.md"))["data"]["skill"] == f"{inner}/SKILL.md"


async def test_of_a_dynamic_skill_everything_is_read() -> None:
    async with rig(listed=[entry()]) as it:
        it.desk.given[f"{REFUNDS}/new.md"] = b"made now"
        assert await refused(it, "new.md") is None


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [{"uri": MANIFEST}],
        [{"text": "a"}] * 2,
        [{"text": 5}],
        [{"blob": "?"}],
        [{"text": "a", "blob": "YQ=="}],
        [5],
    ],
)
async def test_an_answer_that_is_not_one_file_is_not_the_file(contents: list[Any]) -> None:
    async with rig() as it:
        before = it.desk._result

        def said(method: str, params: Any) -> Any:
            return {"contents": contents} if method == "resources/read" else before(method, params)

        it.desk._result = said  # type: ignore[method-assign]
        assert (await it.ask("", LEGACY, "resources/read", uri=f"{HERE}/SKILL.md"))["error"]["data"]["type"] in (
            "mismatch",
            "protocol",
        )


async def test_at_the_transparent_doors_the_client_is_the_one_who_checks() -> None:
    async with rig() as it:
        it.desk.given[MANIFEST] = b"changed"
        for path, uri in (("all", f"{HERE}/SKILL.md"), ("servers/desk", MANIFEST)):
            assert (await it.result(path, LEGACY, "resources/read", uri=uri))["contents"][0]["text"] == "changed"


async def test_many_skills_are_shown_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [entry(f"skill://refund-{number}", None, **{"allowed-tools": "a b c"}) for number in range(10)]
    async with rig(listed=listed) as it:
        bench, beside = it.running.gateway.parts.bench, list[int]()
        run = bench.run

        async def noted(size: int, work: Any, *arguments: Any) -> Any:
            beside.append(size)
            return await run(size, work, *arguments)

        monkeypatch.setattr(bench, "run", noted)
        for query in ("refund a customer", "*"):
            beside.clear()
            assert len((await it.rows(query))["tools"]) == 10
            assert max(beside) > SMALL_BYTES
