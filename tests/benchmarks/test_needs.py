"""The benchmark of needs: what its model reads, calls and counts, in either way that a daemon tells of failures."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from benchmarks import machine, needs, needs_report, strict_server
from benchmarks.model import Model, Outcome, said, schema_in
from benchmarks.search import Query, Tool
from supervisor.neural import package

SCHEMA = {"type": "object", "properties": {"body": {"type": "object"}}, "required": ["body"]}
TYPED = "mail(body: object)"
WITH_SCHEMA = {"tool_path": "m:mail", "relevance_score": 0.2, "inputSchema": SCHEMA}
WITH_TYPES = {"tool_path": "m:mail", "relevance_score": 0.2, "signature": TYPED}
WITH_NAMES = {"tool_path": "m:mail", "relevance_score": 0.2, "signature": "mail(body)", "required": ["body"]}
OTHER = {"tool_path": "o:other", "relevance_score": 0.7, "signature": "other()"}
LACKS = f"m:mail: missing body. inputSchema: {json.dumps(SCHEMA)}"
ONE = Query("q", "write to Ann", "nl", [[("m", "mail"), ("m", "post")]])
NONE = Query("n", "fly to the moon", "no_match")


def shown(text: str, *, failed: bool = False) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": text}], "isError": failed}}


class Desk:
    """Answers as a gateway does: a page with these rows, and the calls of its one server."""

    def __init__(self, *rows: Mapping[str, Any], schema: Any = SCHEMA, answer: Any = None) -> None:
        self.rows = rows
        self.schema = schema
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []

    def send(self, call: tuple[str, dict[str, Any]]) -> Any:
        name, arguments = call
        self.asked.append(call)
        if name == "discover_mcp_tools":
            exact = arguments["query"] == "m:mail"
            rows = [{**WITH_SCHEMA, "inputSchema": self.schema}] if exact else self.rows
            return shown(json.dumps({"tools": rows, "total_found": len(rows)}))
        if self.answer is not None:
            return self.answer
        server, _, tool = arguments["tool_path"].partition(":")
        tools = [{"name": tool, "inputSchema": self.schema}]
        params = {"name": tool, "arguments": arguments["arguments"]}
        return strict_server.answer(server, tools, "tools/call", params)

    def tried(self, query: Query) -> Outcome:
        return Model(self.send, lambda text: len(text.split())).try_to_meet(query)


@pytest.mark.parametrize(("row", "source"), [(WITH_SCHEMA, "schema"), (WITH_TYPES, "types")])
def test_a_call_made_from_what_a_row_shows_meets_the_need(row: dict[str, Any], source: str) -> None:
    desk = Desk(OTHER, row)
    outcome = desk.tried(ONE)
    (need,) = outcome.needs
    assert desk.asked == [
        ("discover_mcp_tools", {"query": "write to Ann", "limit": 10}),
        ("execute_mcp_tool", {"tool_path": "m:mail", "arguments": {"body": {}}}),
    ]
    assert (need.place, need.fits, need.source, need.calls, need.met, need.why) == (2, True, source, 1, 1, "")
    assert (outcome.calls, outcome.tokens > 5, outcome.nothing) == (2, True, False)
    assert outcome.log[0] == "== q (nl)"
    assert outcome.log[-2:] == ["< ran m:mail", "-- m:mail or m:post: met by call 1"]


def test_where_a_server_shows_no_schema_the_model_asks_for_the_tool_and_calls_again() -> None:
    desk = Desk(WITH_NAMES)
    outcome = desk.tried(ONE)
    (need,) = outcome.needs
    assert [arguments for _, arguments in desk.asked[1:]] == [
        {"tool_path": "m:mail", "arguments": {"body": "text"}},
        {"query": "m:mail", "limit": 1},
        {"tool_path": "m:mail", "arguments": {"body": {}}},
    ]
    assert (need.calls, need.met, outcome.calls) == (2, 2, 4)
    assert need.why == "refused, the row shows names only"


@pytest.mark.parametrize("told", [{"error": {"code": -32602, "message": LACKS}}, shown(LACKS, failed=True)], ids=str)
def test_the_schema_in_an_error_is_read_however_the_error_is_told(told: Any) -> None:
    desk = Desk(WITH_NAMES, answer=told)
    (need,) = desk.tried(ONE).needs
    assert [name for name, _ in desk.asked] == ["discover_mcp_tools", "execute_mcp_tool", "execute_mcp_tool"]
    assert desk.asked[-1][1]["arguments"] == {"body": {}}
    assert (need.calls, need.met) == (2, 0)


def test_a_schema_that_is_cut_is_none() -> None:
    assert schema_in(LACKS) == SCHEMA
    assert schema_in(f"{LACKS}; try again") == SCHEMA
    assert schema_in(LACKS[:-5] + " ... (see data.schema)") is None
    assert schema_in("no inputSchema: 7") is schema_in("nothing") is None


@pytest.mark.parametrize(
    ("rows", "answer", "why"),
    [
        ([], None, "the tool is not shown"),
        ([OTHER], None, "the tool is not shown"),
        ([OTHER] * 5 + [WITH_SCHEMA], None, "the tool is shown after the fifth row"),
        ([WITH_SCHEMA], shown("ran o:other"), "another tool ran"),
        ([WITH_SCHEMA], shown("the desk is closed", failed=True), "the call failed otherwise"),
        ([WITH_SCHEMA], {"error": {"code": -31502, "message": "m is down"}}, "the call failed otherwise"),
        ([WITH_SCHEMA], shown("Invalid arguments: $.body: no", failed=True), "refused, the row shows its schema"),
        ([{**WITH_TYPES, "signature": "mail()"}], shown(LACKS, failed=True), "refused, the row shows names only"),
    ],
)
def test_what_went_wrong_is_said(rows: list[Any], answer: Any, why: str) -> None:
    (need,) = Desk(*rows, answer=answer).tried(ONE).needs
    assert (need.met, need.why) == (0, why)


def test_a_query_without_a_tool_calls_nothing_and_notes_whether_a_row_says_that_it_fits() -> None:
    desk = Desk(OTHER)
    assert desk.tried(NONE).nothing
    assert len(desk.asked) == 1
    assert not Desk(OTHER, WITH_TYPES).tried(NONE).nothing
    assert Desk({"kind": "prompt", "relevance_score": 0.1}).tried(NONE).nothing


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '{"tools": null}'])
def test_an_answer_that_is_no_page_has_no_rows(text: str) -> None:
    model = Model(lambda _: shown(text), len)
    assert model.try_to_meet(ONE).needs[0].why == "the tool is not shown"


def test_what_is_shown_of_an_answer() -> None:
    two = {"result": {"content": [{"type": "text", "text": "a"}, {"type": "image"}]}}
    assert (said(two).text, said(two).failed) == ("a\n", False)
    assert (said({"error": {}}).text, said({"error": {}}).failed) == ("", True)


def test_a_composite_query_has_a_need_for_each_group() -> None:
    query = Query("c", "write and look", "composite", [[("m", "mail")], [("x", "look")]])
    outcome = Desk(WITH_SCHEMA).tried(query)
    assert [need.met for need in outcome.needs] == [1, 0]


def test_the_report_has_the_figure_the_shares_and_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [
        Desk(WITH_SCHEMA).tried(ONE),
        Desk(OTHER, WITH_NAMES).tried(ONE),
        Desk(OTHER).tried(ONE),
        Desk(OTHER).tried(NONE),
    ]
    needs_report.report(outcomes)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "needs met after one discover and one call: 33.3 % (1 of 3)"
    assert "queries without a tool, nothing called: 100.0 % (1 of 1)" in lines
    assert "these and the needs together, right: 50.0 % (2 of 4)" in lines
    assert "first calls with arguments made from names: 1, valid 0.0 % (0 of 1)" in lines
    assert "first calls with arguments made from schema: 1, valid 100.0 % (1 of 1)" in lines
    assert "not met:   1 refused, the row shows names only (met by the second call: 1)" in lines
    assert "not met:   1 the tool is not shown" in lines
    (nl,) = [line for line in lines if line.startswith("nl ")]
    assert "one call  33.3  two calls  66.7  by the first row  33.3  by a row that fits  33.3  in 5 rows  66.7" in nl
    assert "calls 2.33" in nl  # two, four and one
    assert "no_match (no tool)" in lines[1]


def test_a_report_on_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    needs_report.report([])
    assert capsys.readouterr().out.splitlines()[-1] == "needs met after one discover and one call: - % (0 of 0)"


def test_a_sample_is_always_the_same_and_in_order() -> None:
    queries = [Query(number, "text") for number in range(50)]
    some = needs.sampled(queries, 7)
    assert some == needs.sampled(queries, 7)
    assert len(some) == 7
    assert [query.id for query in some] == sorted(query.id for query in some if isinstance(query.id, int))
    assert needs.sampled(queries, None) == needs.sampled(queries, 99) == queries


def test_a_strict_server_lists_its_tools_and_refuses_what_its_schema_does() -> None:
    tools = [{"name": "mail", "inputSchema": SCHEMA}, {"name": "odd", "inputSchema": {"type": "any"}}]
    listed = strict_server.answer("m", tools, "tools/list", {})
    assert listed["result"]["tools"] == tools
    assert strict_server.answer("m", tools, "initialize", {})["result"]["serverInfo"]["name"] == "m"
    refused = strict_server.answer("m", tools, "tools/call", {"name": "mail", "arguments": {"body": 7}})
    assert refused == shown("Invalid arguments: $.body: 7 is not of type 'object'", failed=True)
    assert strict_server.answer("m", tools, "tools/call", {"name": "odd"}) == shown("ran m:odd")
    assert "Unknown tool" in strict_server.answer("m", tools, "tools/call", {"name": "x"})["error"]["message"]
    assert strict_server.answer("m", tools, "no/such", {})["error"]["code"] == -32601
    assert strict_server.problems({"type": "object", "properties": {"d": {"format": "date"}}}, {"d": "soon"})


def test_meanings_that_were_asked_for_and_cannot_be_had_end_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "daemon.log"
    assert package.load("neural", tmp_path, replace(package.MINILM, module="no_such_module")) is None
    log.write_text(f"listening\n{caplog.text}")
    with pytest.raises(SystemExit, match="words alone"):
        needs.check_meanings(log)
    log.write_text("listening\n")
    needs.check_meanings(log)


def test_the_processor_time_of_a_process_is_read() -> None:
    before = time.process_time()
    while time.process_time() < before + 0.05:
        pass
    assert machine.cpu_s(os.getpid()) >= before


def test_the_tools_of_each_server_are_published_once(tmp_path: Path) -> None:
    servers = needs.publish([Tool("a", "x", "d"), Tool("a", "x"), Tool("b", "y", input_schema=SCHEMA)], tmp_path)
    assert list(servers) == ["a", "b"]
    (first, second) = [json.loads(Path(servers[name]["args"][-1]).read_text()) for name in servers]
    assert first == [{"name": "x", "inputSchema": {}, "description": "d"}]
    assert second == [{"name": "y", "inputSchema": SCHEMA}]
