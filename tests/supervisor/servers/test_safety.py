"""Levels of safety, as the operator sets them: what is shown, what needs a yes, and what a change of them does."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from msgspec.structs import replace

from actors.catalogue.snapshot import Catalogue
from actors.kit import Conditions, Latest
from actors.principal import LOCAL
from supervisor.config import ServerConfig
from supervisor.servers.deployment import Deployment
from supervisor.servers.safety import MAX_BOUND, SafetyRules, expose
from tests.fakes.deployments import deployment
from tests.fakes.tool_catalogue import CATALOGUE

TOOLS = ("read_file", "writeFile", "delete_file", "unheard_of")


def files(daemon: dict[str, Any], **entry: Any) -> Latest[Deployment]:
    return deployment(ServerConfig(name="files", command="x", **entry), **daemon)


def rules(cell: Latest[Deployment]) -> SafetyRules:
    return SafetyRules(cell, Latest(CATALOGUE))


@pytest.mark.case("X05")
@pytest.mark.parametrize(
    ("daemon", "entry", "confirmed"),
    [
        ({}, {}, []),
        ({"confirm": "dangerous"}, {}, ["delete_file", "unheard_of"]),
        ({"confirm": "moderate"}, {}, ["writeFile", "delete_file", "unheard_of"]),
        ({"confirm": "safe"}, {}, [*TOOLS]),
        ({"confirm": "safe"}, {"confirm": "none"}, []),
        ({}, {"confirm": "dangerous"}, ["delete_file", "unheard_of"]),
        ({}, {"confirm": ("read_*",)}, ["read_file"]),
        ({"confirm": "dangerous"}, {"confirm": ("read_*",)}, ["read_file", "delete_file", "unheard_of"]),
    ],
)
def test_names_and_levels_say_what_needs_a_yes(
    daemon: dict[str, Any], entry: dict[str, Any], confirmed: list[str]
) -> None:
    asked = rules(files(daemon, **entry))
    assert [tool for tool in TOOLS if asked.confirms(LOCAL, "files", tool)] == confirmed
    assert [tool for tool in TOOLS if asked.confirms(LOCAL, "files", tool)] == confirmed, "also a second time"


@pytest.mark.parametrize(
    ("daemon", "entry", "exposed"),
    [
        ({}, {}, [*TOOLS]),
        ({"expose": "moderate"}, {}, ["read_file", "writeFile"]),
        ({"expose": "safe"}, {}, ["read_file"]),
        ({"expose": "safe"}, {"expose": "dangerous"}, [*TOOLS]),
        ({}, {"expose": "safe"}, ["read_file"]),
    ],
)
def test_no_more_is_called_than_is_shown(daemon: dict[str, Any], entry: dict[str, Any], exposed: list[str]) -> None:
    asked = rules(files(daemon, **entry))
    assert [tool for tool in TOOLS if asked.of_call(LOCAL, "files", tool).exposed] == exposed


def test_the_newest_settings_and_definitions_count() -> None:
    cell, catalogue = files({}), Latest(CATALOGUE)
    asked = SafetyRules(cell, catalogue)
    assert asked.of_call(LOCAL, "files", "writeFile") == (True, False, False)
    cell.set(files({"confirm": "dangerous", "expose": "safe"}).value)
    assert asked.of_call(LOCAL, "files", "writeFile") == (False, False, False)
    deleting = CATALOGUE.entries["files"].tools["delete_file"]
    turned = replace(CATALOGUE.entries["files"], tools={"writeFile": deleting})
    catalogue.set(replace(CATALOGUE, entries={"files": turned}))
    assert asked.of_call(LOCAL, "files", "writeFile").needs_yes, "the same name, but another tool"


def test_what_clients_make_up_is_not_kept_for_ever() -> None:
    asked = rules(files({"confirm": "dangerous"}))
    for number in range(2 * MAX_BOUND):
        assert asked.of_call(LOCAL, "files", f"made up {number}").needs_yes
    assert len(asked._bound) <= MAX_BOUND


async def test_from_the_start_on_nobody_sees_more() -> None:
    async with trio.open_nursery() as nursery:
        cell = files({"expose": "moderate"})
        shown: Latest[Catalogue] = await nursery.start(expose, Latest(CATALOGUE), cell, Conditions(lambda: 0.0))
        assert "delete_file" not in shown.value.entries["files"].tools
        nursery.cancel_scope.cancel()
