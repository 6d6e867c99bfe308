"""The page about a tool's definitions: complete, masked, and with nothing in it that cannot be seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest
import trio
from quart_trio import QuartTrio

from supervisor.commands.history import lines_of
from supervisor.front.pages.performing import add_operations
from supervisor.front.pages.tools import revisions
from supervisor.store import ReplacedDefinition
from tests.fakes.front_server import dispatch, running
from tests.fakes.tool_view import view_of

NOW = 1_000_000.0
READ = {"name": "read_file", "description": "Reads."}


def replaced(*definitions: dict[str, Any] | None) -> list[ReplacedDefinition]:
    return [
        ReplacedDefinition("s", "t", number, NOW + number, b"" if each is None else json.dumps(each).encode())
        for number, each in enumerate(definitions, start=1)
    ]


async def page(kept: Sequence[ReplacedDefinition], path: str) -> tuple[int, Any]:
    async def load(server: str, tool: str) -> Sequence[ReplacedDefinition]:
        await trio.lowlevel.checkpoint()
        return kept if (server, tool) in {("files", "read_file"), ("files", "of_old")} else []

    def register(app: QuartTrio) -> None:
        add_operations(view_of(definitions=load), app)

    async with running(dispatch(register)) as server:
        base = f"http://127.0.0.1:{server.port}"
        async with httpx2.AsyncClient(base_url=base, trust_env=False, timeout=30) as client:
            answer = await client.get("/api/tools/history", params={"path": path})
            return answer.status_code, answer.json()


async def test_a_tool_that_never_changed_has_one_and_one_that_is_gone_is_still_told_of() -> None:
    _, never = await page([], "files:read_file")
    assert [(each["number"], each["since"], each["until"]) for each in never["revisions"]] == [(1, None, None)]
    _, gone = await page(replaced(READ), "files:of_old")
    assert (gone["offered"], len(gone["revisions"])) == (False, 1)


def test_secrets_and_what_cannot_be_seen_are_not_shown_as_they_are() -> None:
    hidden = {"name": "t", "description": "Reads\x1b[2J\u200bkey-123\u202e.", "\x07": "key-123"}
    old, new = revisions(
        replaced({"name": "t"}), json.dumps(hidden).encode(), lambda text: text.replace("key-123", "***")
    )
    assert old["changes"] == []
    assert new["changes"] == [
        {"place": "\\u0007", "before": None, "after": "***"},
        {"place": "description", "before": None, "after": "Reads\\u001b[2J\\u200b***\\u202e."},
    ]


def test_what_was_too_long_to_be_kept_is_not_compared() -> None:
    told = [each["changes"] for each in revisions(replaced(READ, None, READ), b"{}", str)]
    assert told[:3] == [[], None, None]
    assert told[3]


def test_very_many_places_end_somewhere() -> None:
    many = json.dumps({str(number): number for number in range(1000)}).encode()
    (_, now) = revisions(replaced({}), many, str)
    assert len(now["changes"]) == 101
    assert now["changes"][-1]["place"] == "..."


@pytest.mark.parametrize(
    ("kept", "now", "expected"),
    [
        ([], b"{}", ["files:t  never changed, as far as is kept"]),
        (
            [{"a": 1}],
            b'{"a":2,"b":"x  y"}',
            [
                "files:t  changed 1 time, as far as is kept",
                "",
                "(4s ago)",
                "  a",
                "    - 1",
                "    + 2",
                "  b",
                "    + x  y",
            ],
        ),
        ([{"a": 1}], None, ["files:t  changed 1 time, as far as is kept", "", "(4s ago): not offered any more"]),
        (
            [{"a": 1}, None],
            b"{}",
            [
                "files:t  changed 2 times, as far as is kept",
                *("", "(4s ago)", "  another definition; one of the two was too long to be kept"),
                *("", "(3s ago)", "  another definition; one of the two was too long to be kept"),
            ],
        ),
        (
            [{"a": 1}],
            b'{"a":1}',
            [
                "files:t  changed 1 time, as far as is kept",
                *("", "(4s ago)", "  the same definition as before: it was away in the meantime"),
            ],
        ),
    ],
)
def test_the_command_shows_each_change_place_by_place(
    kept: list[dict[str, Any] | None], now: bytes | None, expected: list[str]
) -> None:
    rows = [*revisions(replaced(*kept), now, str)]
    told = {"path": "files:t", "offered": now is not None, "own": False, "revisions": rows}
    lines = [line.plain for line in lines_of(told, NOW + 5)]
    assert [line[17:] if line[:2] == "19" else line for line in lines] == expected


def test_the_command_says_whose_a_history_is_that_is_not_of_all() -> None:
    told = {"path": "files:t", "offered": True, "own": True, "revisions": [*revisions([], b"{}", str)]}
    assert [line.plain for line in lines_of(told, NOW)] == [
        "files:t  never changed, as far as is kept",
        "Its server is not started for all alike. This is of one launch, since the daemon started.",
    ]
