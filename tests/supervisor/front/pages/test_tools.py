"""The operators' pages about tools, asked over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import trio
from msgspec.structs import replace
from quart_trio import QuartTrio

from actors.catalogue.tool_rules import ToolRules
from actors.kit import Latest
from supervisor.front.pages.performing import add_operations
from supervisor.front.pages.view import Described, View, findings
from tests.fakes.front_server import dispatch, running
from tests.fakes.tool_catalogue import CATALOGUE, entry
from tests.fakes.tool_view import view_of


@asynccontextmanager
async def pages(view: View) -> AsyncIterator[httpx2.AsyncClient]:
    def register(app: QuartTrio) -> None:
        add_operations(view, app)

    async with running(dispatch(register)) as server:
        with trio.fail_after(30):
            async with httpx2.AsyncClient(
                base_url=f"http://127.0.0.1:{server.port}", trust_env=False, timeout=30
            ) as client:
                yield client


async def page(path: str, view: View | None = None) -> tuple[int, dict[str, Any]]:
    async with pages(view or view_of()) as client:
        answer = await client.get(path)
        assert answer.headers["content-type"] == "application/json"
        return answer.status_code, answer.json()


async def test_tools_are_selected_by_the_parameters() -> None:
    status, body = await page("/api/tools?servers=files&servers=gone&sort_by=success_rate&descending=true&limit=1")
    assert status == 200
    assert (body["total"], body["limit"], body["offset"]) == (3, 1, 0)
    assert body["by_safety"] == {"safe": 1, "moderate": 1, "dangerous": 1}
    (row,) = body["tools"]
    assert (row["path"], row["calls"], row["success_rate"], row["avg_ms"]) == ("files:delete_file", 2, 1.0, 5.0)
    assert row["metadata"]["safety"] == "dangerous"
    assert row["metadata"]["annotations"]["destructiveHint"] is True
    assert body["groups"]["dangerous"] == ["files:delete_file"]


async def test_a_renamed_tool_has_the_figures_of_its_own_name() -> None:
    files = CATALOGUE.entries["files"].with_rules(ToolRules(deny=("delete_*",), rename={"read_file": "open"}))
    view = view_of(catalogue=Latest(replace(CATALOGUE, entries={**CATALOGUE.entries, "files": files})))
    _, body = await page("/api/tools?servers=files", view)
    assert body["hidden"] == {"files": ["delete_file"]}
    rows = {row["path"]: row for row in body["tools"]}
    assert list(rows) == ["files:open", "files:writeFile"]
    renamed = rows["files:open"]
    assert (renamed["own_name"], renamed["calls"], renamed["metadata"]["safety"]) == ("read_file", 10, "safe")
    assert rows["files:writeFile"]["own_name"] == "writeFile"


async def test_tools_are_described_again_only_when_their_server_lists_others() -> None:
    described = Described()
    first = await described.of(CATALOGUE)
    counted = CATALOGUE.with_counts("files", {"read_file": 31}, exact=True)
    second = await described.of(counted)
    assert all(first[name] is second[name] for name in first)
    other = entry("shop", {"name": "pay", "description": "Pays for an order."})
    third = await described.of(replace(CATALOGUE, entries={"files": CATALOGUE.entries["files"], "shop": other}))
    assert third["files"] is first["files"]
    assert list(third["shop"]) == ["pay"]
    assert list(third) == ["files", "shop"]


async def test_findings_are_bounded_and_warnings_come_first() -> None:
    noisy = entry("noisy", *({"name": f"t{number}", "description": "x " * 300} for number in range(80)))
    described, catalogue = Described(), replace(CATALOGUE, entries={"noisy": noisy})
    rows = findings(await described.of(catalogue))["noisy"]
    assert len(rows) == 100
    assert [row["severity"] for row in rows] == ["warning"] * 80 + ["note"] * 20
    assert await described.warnings(catalogue) == {"noisy": 80}
