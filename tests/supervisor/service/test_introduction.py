"""The instructions of the daemon: they list the servers, and change with the catalogue and the state of servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.catalogue.names import ServerNames
from actors.catalogue.snapshot import Catalogue
from actors.kit import Latest
from actors.life.states import State
from actors.messages import ServerStatus
from actors.protocol.agreement.versions import Era
from actors.protocol.listing import SKILLS
from actors.protocol.tasks import EXTENSION
from actors.search.index import Index
from supervisor.config import Settings
from supervisor.servers.deployment import Deployment
from supervisor.service import introduction as module
from supervisor.service.introduction import FINDS, HOW, PAUSE_S, THERE, Introduction, SelfDescription
from supervisor.service.lookup.visible import Visible
from supervisor.tokens.counting import Tiktoken, load_encoding
from tests.fakes.exchanges import LEGACY, MODERN
from tests.fakes.published import Publisher, Served, served
from tests.fakes.tool_catalogue import entry


def tools(*names: str) -> list[dict[str, object]]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


async def said(found: Served) -> str:
    """Return the instructions, which both eras get alike."""
    text = (await found.ask("initialize"))["result"]["instructions"]
    assert (await found.ask("server/discover", MODERN))["result"]["instructions"] == text
    return str(text)


async def test_the_instructions_list_the_servers_and_follow_the_catalogue() -> None:
    servers = {"github": Publisher(tools("create_issue")), "late": Publisher(tools("send"))}
    async with served(servers, undiscovered=["late"]) as found, trio.open_nursery() as nursery:
        assert await said(found) == f"{FINDS}. {HOW}"
        await found.gateway.introduction.renew()
        text = await said(found)
        assert text == f'{FINDS}: github. {HOW}\n{THERE}github "create_issue"; late (starting).'
        found.report("late", State.FAILED, reason="no such file", restarts=1)
        nursery.start_soon(found.gateway.introduction.run)
        while "late (permanently_failed)" not in await said(found):
            await found.gateway.introduction.made.wait_newer(found.gateway.introduction.made.version)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("others", [4, 40])
async def test_servers_are_named_within_what_a_client_shows_that_holds_tools_back(others: int) -> None:
    places = ("berlin-records", "lagos-records", "quito-records", "tokyo-records")
    names = [*places, *(f"{place}-{number}" for place in ("venue", "wharf") for number in range(others // 2))]
    async with served({name: Publisher(tools("create_issue")) for name in names}) as found:
        await found.gateway.introduction.renew()
        assert f"{FINDS}: {', '.join(places)}, venue-0" in (await said(found))[:250].replace(";", ",")
        assert (await said(found)).count("lagos") == (1 if others == 40 else 2), "with its purpose, where there is room"


def announced(version: str, *offered: Mapping[str, object], era: Era = "legacy", passes: bool = False) -> Any:
    """Return the capabilities that a client is told of, of servers that have these."""
    entries = {
        f"s{number}": entry(f"s{number}", capabilities=msgspec.Raw(json.dumps(each).encode()), era=era)
        for number, each in enumerate(offered)
    }
    seen = Visible(Latest(Catalogue(entries=entries, index=Index.empty())), Latest({}), Latest(Deployment()))
    said = SelfDescription(seen, "1", "x", str, lambda: False, lambda principal: False, passes=passes)
    client = replace(MODERN if version == MODERN.version else LEGACY, version=version)
    body = said.answer(client, "server/discover" if client.era == "modern" else "initialize")
    assert body is not None
    return json.loads(body)["capabilities"]


def test_clients_are_told_of_what_one_of_the_servers_does_in_words_that_they_know() -> None:
    both = {"completions": {}, "logging": {}, "resources": {"subscribe": True}}
    assert {*announced("2025-03-26", both, {})} == {"tools", "resources", "prompts", "completions", "logging"}
    assert {*announced("2024-11-05", both, {})} == {"tools", "resources", "prompts", "logging"}
    assert {*announced("2025-11-25", {}, {})} == {"tools", "resources", "prompts"}
    assert announced("2025-11-25", both, {})["resources"] == {"listChanged": False, "subscribe": True}
    assert announced("2025-11-25", {}, {})["resources"] == {"listChanged": False}


def test_clients_are_told_of_tasks_at_doors_that_pass_them_by_servers_of_their_era() -> None:
    some: dict[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}}
    more = {"tasks": {"cancel": {}, **some["tasks"]}}
    assert announced("2025-11-25", more, some, {}, passes=True)["tasks"] == some["tasks"]
    assert announced("2025-11-25", more, passes=True)["tasks"] == more["tasks"]
    assert "tasks" not in announced("2025-11-25", some)
    assert "tasks" not in announced("2025-11-25", {}, passes=True)
    assert "tasks" not in announced("2025-06-18", some, passes=True)
    extended = {"extensions": {EXTENSION: {}}, **some}
    told = announced(MODERN.version, extended, era="modern", passes=True)
    assert (told["extensions"], "tasks" in told) == ({EXTENSION: {}}, False)
    assert "extensions" not in announced(MODERN.version, extended, era="legacy", passes=True)
    assert "extensions" not in announced(MODERN.version, extended, era="modern")


def test_clients_are_told_that_directories_of_skills_are_read_where_all_that_have_skills_read_them() -> None:
    reads, refuses, skills = (
        {"extensions": {SKILLS: each}} for each in ({"directoryRead": True}, {"directoryRead": False}, {})
    )
    assert announced("2025-11-25", reads, {})["extensions"] == {SKILLS: {"directoryRead": True}}
    assert announced("2025-11-25", reads, skills)["extensions"] == {SKILLS: {}}
    assert announced("2025-11-25", refuses)["extensions"] == {SKILLS: {}}
    assert "extensions" not in announced("2025-11-25", {})


async def test_no_quotes_are_announced_where_there_are_none() -> None:
    names = ServerNames({}).with_servers(("late", "later"))
    seen = Catalogue(index=Index.empty(), indexed=True, names=names)
    introduction = Introduction(Visible(Latest(seen), Latest({}), Latest(Deployment())), Latest(Deployment()))
    await introduction.renew()
    assert introduction.text() == f"{FINDS}: late (starting); later (starting). {HOW}"


async def test_what_is_made_of_an_older_catalogue_is_not_done_after_what_is_newer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, goes_on = trio.Event(), trio.Event()

    async def made_late(make: Callable[[], object]) -> object:
        if not begun.is_set():
            made = make()
            begun.set()
            await goes_on.wait()
            return made
        return make()

    monkeypatch.setattr(module, "beside", made_late)
    catalogues = [
        Catalogue(index=Index.empty(), indexed=True, names=ServerNames({}).with_servers((name,)))
        for name in ("old", "new")
    ]
    seen = Latest(catalogues[0])
    introduction = Introduction(Visible(seen, Latest({}), Latest(Deployment())), Latest(Deployment()))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(introduction.prepare)
        await begun.wait()
        seen.set(catalogues[1])
        nursery.start_soon(introduction.renew)
        await wait_all_tasks_blocked()
        goes_on.set()
    assert introduction.text() == f"{FINDS}: new (starting). {HOW}"


async def test_the_instructions_keep_to_their_budget() -> None:
    servers = {f"server-{number}": Publisher(tools("create_issue", "list_issues")) for number in range(40)}
    async with served(servers) as found:
        cell, count = found.gateway.parts.deployment, Tiktoken(load_encoding()).count
        for budget in (10, 300, 1000):
            cell.set(replace(cell.value, settings=Settings(instructions_token_budget=budget)))
            await found.gateway.introduction.renew()
            assert count(await said(found)) <= max(budget, count(f"{FINDS}. {HOW}"))


async def test_nothing_is_made_while_nothing_changes(mock_clock: MockClock) -> None:
    statuses = Latest[Mapping[str, ServerStatus]]({})
    introduction = Introduction(
        Visible(Latest(Catalogue(index=Index.empty())), statuses, Latest(Deployment())), Latest(Deployment())
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(introduction.run)
        await introduction.made.wait_newer(0)
        for _ in range(2):
            await wait_all_tasks_blocked()
            mock_clock.jump(100 * PAUSE_S)
        await wait_all_tasks_blocked()
        assert introduction.made.version == 1
        statuses.set({"new": ServerStatus(server="new", state=State.READY, wanted="up", since=0.0)})
        await introduction.made.wait_newer(1)
        nursery.cancel_scope.cancel()
