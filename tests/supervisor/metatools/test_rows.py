"""One hit on its way into a page: what is given up for room, and what never is."""

from __future__ import annotations

import json

import msgspec

from actors.catalogue.offer import Tool
from supervisor.metatools.page import TERSE_DESCRIPTION, Row

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = Tool(name="read", input_schema=msgspec.Raw(json.dumps(SCHEMA).encode()))
LINE = {"tool_path": "s:read", "description": "Reads it. " * 30, "signature": "read(path?: string)", "annotations": {}}


def test_a_row_is_completed_once_and_nothing_without_a_tool_is() -> None:
    row = Row(LINE, TOOL)
    row.complete()
    assert (json.loads(bytes(row.value["inputSchema"])), row.is_signature) == (SCHEMA, False)
    before = row.value
    row.complete()
    assert row.value is before


def test_a_row_with_its_schema_keeps_its_description_when_it_has_to_shrink() -> None:
    line, complete = Row(LINE, TOOL), Row(LINE, TOOL)
    complete.complete()
    for row in (line, complete):
        saved = row.shrink()
        assert saved > 0
        assert "annotations" not in row.value
    assert len(line.value["description"]) <= TERSE_DESCRIPTION[0]
    assert complete.value["description"] == LINE["description"]
