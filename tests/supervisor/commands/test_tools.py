"""The commands about tools, against the pages they ask."""

from __future__ import annotations

import json
import shlex

import pytest
import trio
from click.testing import CliRunner, Result
from msgspec.structs import replace
from quart_trio import QuartTrio

from actors.catalogue.criteria import Criteria
from actors.catalogue.tool_rules import ToolRules
from actors.catalogue.trust import Standing
from actors.kit import Latest
from actors.life.breakers import OpenBreaker
from actors.life.states import State
from actors.messages import ServerStatus
from supervisor.cli import cli
from supervisor.commands.common import json_text
from supervisor.commands.tools import tools
from supervisor.front.pages.performing import add_operations
from supervisor.front.pages.view import View
from tests.fakes.front_server import dispatch, running
from tests.fakes.tool_catalogue import CATALOGUE, entry
from tests.fakes.tool_view import view_of


async def invoke(line: str, view: View | None = None) -> Result:
    """Run one command, in a thread as it has a loop of its own, against the pages of a view."""
    shown = view or view_of()

    def register(app: QuartTrio) -> None:
        add_operations(shown, app)

    async with running(dispatch(register)) as server:
        with trio.fail_after(30):
            words = [*shlex.split(line), "--url", f"http://127.0.0.1:{server.port}"]
            return await trio.to_thread.run_sync(CliRunner().invoke, cli, words)


async def paths(line: str) -> list[str]:
    result = await invoke(f"tools --json {line}")
    assert result.exit_code == 0, result.output
    return [row["path"] for row in json.loads(result.stdout)["tools"]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--read-only", ["files:read_file", "shop:search_orders"]),
        ("--not-read-only --not-destructive", []),
        ("--destructive", ["files:delete_file"]),
        ("--idempotent", ["files:writeFile"]),
        ("--open-world", ["shop:search_orders"]),
        ("--safety safe --include-unavailable", ["gone:list_ghosts", "files:read_file", "shop:search_orders"]),
        ("--requires-confirmation", []),
        ("--no-confirmation --safety safe", ["files:read_file", "shop:search_orders"]),
        ("--server shop --server files --limit 1 --offset 1", ["files:read_file"]),
        ("--server-version 2", ["shop:search_orders", "shop:ship"]),
        ("--tag slow", ["files:read_file"]),
        ("--name file --sort tokens --descending", ["files:read_file", "files:delete_file", "files:writeFile"]),
        ("--description 'an order' --complexity moderate", ["shop:ship"]),
    ],
)
async def test_options_are_the_criteria(line: str, expected: list[str]) -> None:
    assert await paths(line) == expected


def test_every_criterion_has_an_option() -> None:
    options = {parameter.name for parameter in tools.params} - {"as_json", "url", "required", "by_effect"}
    assert options == set(Criteria.__struct_fields__)


async def test_a_tool_s_text_is_shown_without_control_characters_on_one_line() -> None:
    nasty = entry("a", {"name": "b", "description": "one\n\x1b[2Jtwo [red]three " + "x" * 200})
    view = view_of(catalogue=Latest(replace(CATALOGUE, entries={"a": nasty})))
    row = (await invoke("tools", view)).stdout.splitlines()[1]
    assert "\x1b" not in row
    assert "one two [red]three xxx" in row
    assert row.endswith("\u2026")


async def test_tools_that_wait_for_approval_are_named_below_the_others() -> None:
    files = CATALOGUE.entries["files"]
    held = files.with_rules(ToolRules(), Standing(trust="strict", waiting={"read_file": "added"}))
    view = view_of(catalogue=Latest(replace(CATALOGUE, entries={**CATALOGUE.entries, "files": held})))
    lines = (await invoke("tools --server files", view)).stdout.splitlines()
    assert lines[-1] == "held until they are approved (mcpvisor approve files): read_file"


async def test_tools_that_the_configuration_hides_are_named_below_the_others() -> None:
    files = CATALOGUE.entries["files"].with_rules(ToolRules(deny=("*_file",), rename={"writeFile": "save"}))
    view = view_of(catalogue=Latest(replace(CATALOGUE, entries={**CATALOGUE.entries, "files": files})))
    lines = (await invoke("tools --server files", view)).stdout.splitlines()
    assert lines[1].startswith("files:save ")
    assert lines[-2:] == [
        "1 of 1 tools (0 safe, 1 moderate, 0 dangerous)",
        "hidden by the configuration of files: read_file, delete_file",
    ]
    assert "hidden" not in (await invoke("tools --server shop", view)).stdout
    told = json.loads((await invoke("tools --json --name read", view)).stdout)
    assert told["hidden"] == {"files": ["read_file"]}


def required_view() -> View:
    """The small catalogue with a tool in every state: renamed, hidden, held, of a server that is down or unknown."""
    whole = CATALOGUE.entries["files"]
    rules = ToolRules(deny=("delete_*",), rename={"writeFile": "save"})
    files = whole.with_rules(rules, Standing(trust="strict", waiting={"read_file": "changed"}))
    breaker = OpenBreaker(breaker="tool", tool="ship", until=1e12, seconds=30, failures=3, reason="it is silent")
    up = ServerStatus(server="shop", state=State.DORMANT, wanted="up", since=0.0, breakers=(breaker,))
    off = ServerStatus(
        server="new", state=State.STOPPED, wanted="stopped", since=0.0, disabled=True, reason="it is off"
    )
    names = CATALOGUE.names.with_servers(["new"])
    catalogue = replace(CATALOGUE, entries={**CATALOGUE.entries, "files": files}, names=names)
    return view_of(catalogue=Latest(catalogue), statuses=Latest({"shop": up, "new": off}))


@pytest.mark.parametrize(
    ("required", "status", "code", "why"),
    [
        ("shop:search_orders", "ready", 0, ""),
        ("shop__search-orders", "ready", 0, ""),
        ("files:save", "ready", 0, ""),
        ("files:writeFile", "renamed", 11, "called 'files:save' now"),
        ("files:delete_file", "hidden", 12, "hidden from clients"),
        ("files:read_file", "held", 13, "mcpvisor approve files"),
        ("shop:ship", "unavailable", 14, "it keeps failing: it is silent"),
        ("gone:list_ghosts", "unavailable", 14, "not available"),
        ("new:anything", "unavailable", 14, "it is off"),
        ("shop:shop_orders", "missing", 10, "did you mean shop:search_orders"),
        ("nowhere:tool", "missing", 10, "no server 'nowhere' is configured"),
    ],
)
async def test_a_required_tool_has_a_status_with_its_reason_and_an_exit_code(
    required: str, status: str, code: int, why: str
) -> None:
    result = await invoke(f"tools --require {required} --json", required_view())
    (row,) = json.loads(result.stdout)["tools"]
    assert (row["status"], result.exit_code) == (status, code)
    assert why in row["reason"]
    assert (row["reason"] == "") == (status == "ready")


async def test_required_tools_are_all_told_of_and_what_may_pass_counts_last() -> None:
    result = await invoke("tools --require shop:search_orders,shop:ship --require files:delete_file", required_view())
    lines = [line.split()[:2] for line in result.stdout.splitlines()]
    assert lines == [
        ["TOOL", "STATUS"],
        ["shop:search_orders", "ready"],
        ["shop:ship", "unavailable"],
        ["files:delete_file", "hidden"],
    ]
    assert result.exit_code == 12
    names = ",".join(f"files:tool_{number}" for number in range(45))
    many = await invoke(f"tools --json --require {names}", required_view())
    long = ",".join(f"shop:{number}{'x' * 900}" for number in range(20))
    assert len(json.loads((await invoke(f"tools --json --require {long}", required_view())).stdout)["tools"]) == 20
    assert "not UTF-8" in (await invoke("tools --require shop:\udcff", required_view())).stderr
    assert [row["asked"] for row in json.loads(many.stdout)["tools"]] == names.split(",")


@pytest.mark.case("S16")
async def test_json_for_a_terminal_has_no_character_that_it_obeys_or_that_nobody_sees() -> None:
    text = "one\u009b2Jtwo\u202ethree\u2066four\u3164five\ud800six caf\u00e9 \U000e0041"
    nasty = entry("a", {"name": "b", "description": "described"})
    view = view_of(catalogue=Latest(replace(CATALOGUE, entries={"a": nasty})))
    assert (await invoke("tools --json", view)).exit_code == 0
    shown = json_text({"description": text}, indent=2)
    assert json.loads(shown) == {"description": text}
    assert "café" in shown
    assert all(c == "\n" or c.isprintable() for c in shown)
    assert "\u3164" not in shown


async def test_no_line_of_a_table_in_a_pipe_is_filled_with_blanks() -> None:
    rows = {"long": "x" * 90, "short": "y"}
    entries = {name: entry(name, {"name": "t", "description": text}) for name, text in rows.items()}
    printed = (await invoke("tools", view_of(catalogue=Latest(replace(CATALOGUE, entries=entries))))).stdout
    assert all(line == line.rstrip() for line in printed.splitlines())
