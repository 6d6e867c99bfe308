"""Arguments that a tool's schema does not have, beside all that it needs: refused, or sent and named on failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import msgspec
import pytest
import trio

from actors.catalogue.offer import Offer, Tool
from actors.catalogue.snapshot import Entry
from actors.codes import URL_ELICITATION_REQUIRED
from actors.errors import InvalidArguments
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from supervisor.host.workbench import Workbench
from supervisor.metatools.execution import Execute
from supervisor.metatools.lenient_json import read
from supervisor.metatools.slips import slip_of, takes_no_others
from supervisor.service.calls.counting import PendingCall
from supervisor.service.calls.tool_calls import REMARK, ToolCalls, check_arguments, with_remark
from supervisor.service.client import Client
from supervisor.service.results.keeper import KeptResults
from supervisor.usage.records import UNKNOWN
from tests.fakes.deployments import deployment
from tests.fakes.exchanges import exchange
from tests.fakes.json_texts import raw

PROPERTIES = {"path": {"type": "string"}, "maxCount": {"type": "integer"}}
NAMED = "unknown: max_count (did you mean maxCount?)"


def tool(**more: Any) -> Tool:
    schema = {"type": "object", "properties": PROPERTIES, "required": ["path"], **more}
    return Tool(name="log", input_schema=msgspec.Raw(json.dumps(schema).encode()), required=("path",))


def entry(made: Tool) -> Entry:
    return Entry.make("git", "stdio", Offer(tools=(made,)))


def wanted(**given: Any) -> Execute:
    return Execute(tool_path="git:log", arguments=raw(given))


@pytest.mark.parametrize(
    ("more", "closed"),
    [
        ({"additionalProperties": False}, True),
        ({"additionalProperties": True}, False),
        ({"additionalProperties": {"not": {}}}, False),
        ({"additionalProperties": False, "patternProperties": {"^x": {}}}, False),
        ({}, False),
    ],
)
def test_only_a_schema_that_says_so_takes_no_others(more: dict[str, Any], closed: bool) -> None:
    assert takes_no_others(tool(**more)) is closed


def test_what_a_schema_excludes_is_refused_with_the_name_that_was_meant() -> None:
    made = tool(additionalProperties=False)
    with pytest.raises(InvalidArguments) as refused:
        check_arguments(entry(made), made, wanted(path="x", max_count=3))
    assert refused.value.message == "git:log: unknown: max_count (did you mean maxCount?)"
    assert "schema" in (refused.value.details or {})
    assert check_arguments(entry(made), made, wanted(path="x", maxCount=3)).remark == ""


def test_what_a_schema_may_allow_is_sent_as_it_is_and_named_if_the_call_fails() -> None:
    to_send = check_arguments(entry(tool()), tool(), wanted(path="x", max_count=3))
    assert json.loads(bytes(to_send.arguments)) == {"path": "x", "max_count": 3}
    assert to_send.remark == NAMED


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("count", "unknown: count (did you mean maxCount?)"),
        ("max_count", NAMED),
        ("random", ""),
    ],
)
def test_a_call_that_succeeds_without_an_argument_that_was_misnamed_says_so(name: str, said: str) -> None:
    """Most servers pass over what they do not know, so the call did something else than was meant."""
    to_send = check_arguments(entry(tool()), tool(), wanted(path="x", **{name: 3}))
    told = json.loads(with_remark(b'{"content":[{"type":"text","text":"done"}]}', to_send.remark, to_send.anyway))
    assert [block["text"] for block in told["content"][1:]] == ([said] if said else [])


def writing(name: str = "create_issue", annotations: Any = None, **more: Any) -> Tool:
    schema = {"type": "object", "properties": PROPERTIES, **more}
    return Tool(name=name, input_schema=raw(schema), annotations=raw(annotations or {}))


@pytest.mark.parametrize(
    ("made", "anyway"),
    [
        (writing(), True),
        (writing("forget", {"destructiveHint": True}), True),
        (writing(annotations={"readOnlyHint": True}), False),
        (writing("list_issues"), False),
        (writing(additionalProperties=True), False),
        (writing(additionalProperties={"type": "string"}), False),
        (writing(patternProperties={"^x-": {}}), False),
    ],
)
def test_a_tool_that_changes_something_says_that_it_may_have_passed_over_an_argument(made: Tool, anyway: bool) -> None:
    to_send = check_arguments(entry(made), made, wanted(path="x", dry_run=True))
    assert to_send.anyway is anyway
    assert to_send.remark.startswith(f"unknown: dry_run; git:{made.name} may have no such argument")
    assert ("passed over" in to_send.remark) is anyway


def test_it_says_so_where_its_model_reads() -> None:
    body = b'{"content":[{"type":"text","text":"done"}],"structuredContent":{"n":1}}'
    told = json.loads(with_remark(body, "said", True, True))
    assert told["content"][-1]["text"] == "said"
    assert told["structuredContent"] == {"n": 1, REMARK: "said"}
    assert json.loads(with_remark(body, "said", True))["structuredContent"] == {"n": 1}


def branching(annotations: bytes = b"") -> Tool:
    """A tool that calls a branch `branch_name`, and writes unless its annotations say otherwise."""
    schema = {"type": "object", "properties": {"branch_name": {"type": "string"}}, "required": ["branch_name"]}
    return Tool(name="log", input_schema=raw(schema), required=("branch_name",), annotations=msgspec.Raw(annotations))


def test_an_argument_under_another_name_is_sent_under_the_right_one_and_a_writing_tool_says_so() -> None:
    made = branching()
    to_send = check_arguments(entry(made), made, wanted(branch="main"))
    assert json.loads(bytes(to_send.arguments)) == {"branch_name": "main"}
    said = "branch was taken for branch_name, as this tool calls it"
    assert (to_send.remark, to_send.anyway) == (said, True)
    told = json.loads(with_remark(b'{"content":[{"type":"text","text":"done"}]}', to_send.remark, to_send.anyway))
    assert [block["text"] for block in told["content"]] == ["done", said]


def test_a_reading_tool_says_so_only_if_the_call_fails() -> None:
    made = branching(b'{"readOnlyHint":true}')
    to_send = check_arguments(entry(made), made, wanted(branch="main"))
    assert (bool(to_send.remark), to_send.anyway) == (True, False)


@pytest.mark.parametrize("schema", [b"{}", b'{"type":"object","properties":{},"additionalProperties":false}', b"5"])
def test_a_schema_without_properties_has_nothing_to_say_of_others(schema: bytes) -> None:
    made = Tool(name="log", input_schema=msgspec.Raw(schema))
    assert not slip_of(made, read(raw({"random": 1}))).unknown
    assert check_arguments(entry(made), made, wanted(random=1)).remark == ""


@pytest.mark.parametrize(
    "body",
    [
        b'{"content":[]}',
        b'{"content":[],"isError":false}',
        b'{"content":[],"isError":"yes"}',
        b'{"isError":true}',
        b'{"content":5,"isError":true}',
        b'{"content":[{"type":"text","text":"\\"isError\\":true"}]}',
    ],
)
def test_a_result_that_did_not_fail_or_is_none_keeps_its_bytes(body: bytes) -> None:
    assert with_remark(body, "said") == body


def test_a_failed_result_has_the_remark_as_its_last_text() -> None:
    body = b'{"content":[{"type":"text","text":"no"}],"isError":true,"structuredContent":{"n": 1.0}}'
    told = json.loads(with_remark(body, "said"))
    assert told["content"] == [{"type": "text", "text": "no"}, {"type": "text", "text": "said"}]
    assert told["structuredContent"] == {"n": 1.0}


class Server:
    """Stands for lookup and forwarder; answers with a body, or fails."""

    def __init__(self, answer: bytes | Exception) -> None:
        self._answer = answer

    async def tool(self, *_: Any) -> tuple[Entry, Tool]:
        await trio.lowlevel.checkpoint()
        return entry(tool()), tool()

    def refuse(self, *_: Any) -> None:
        """It can be used."""

    async def ask(self, *_: Any, **__: Any) -> bytes:
        await trio.lowlevel.checkpoint()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def called(answer: bytes | Exception, client: str = "", tool: str = "", **given: Any) -> bytes:
    server = cast("Any", Server(answer))
    calls = ToolCalls(server, server, server, Workbench(8), KeptResults(deployment(), Workbench(8)))
    asked = exchange(Client(name=client), "tools/call")
    asked.called = tool
    pending = PendingCall(asked, UNKNOWN)
    return await calls.call(asked, pending, wanted(path="x", **given), msgspec.Raw(b"{}"))


@contextmanager
def failing() -> Iterator[list[RemoteError]]:
    found: list[RemoteError] = []
    with pytest.raises(RemoteError) as raised:
        yield found
    found.append(raised.value)


@pytest.mark.parametrize("size", [10, 2_000_000])
async def test_a_call_that_failed_names_what_its_schema_does_not_have(size: int) -> None:
    body = json.dumps({"content": [{"type": "text", "text": "x" * size}], "isError": True}).encode()
    assert json.loads(await called(body, max_count=3))["content"][-1]["text"] == NAMED
    assert await called(body, maxCount=3) == body


@pytest.mark.parametrize("tool", ["execute_mcp_tool", "execute_read_only_mcp_tool", "git:log"])
async def test_a_model_that_reads_structured_content_is_told_there_however_it_called(tool: str) -> None:
    body = b'{"content":[],"structuredContent":{"n":1}}'
    told = json.loads(await called(body, "claude-code", tool, max_count=3))
    assert told["structuredContent"] == {"n": 1, REMARK: NAMED}
    assert json.loads(await called(body, "cline", tool, max_count=3))["structuredContent"] == {"n": 1}


async def test_an_error_of_a_server_names_it_too_unless_a_client_acts_on_it() -> None:
    with failing() as found:
        await called(RemoteError(ErrorObject(-32602, "bad", raw({"a": 1})), "git"), max_count=3)
    assert found[0].error.message == f"bad; {NAMED}"
    assert (found[0].error.code, found[0].server) == (-32602, "git")
    with failing() as found:
        await called(RemoteError(ErrorObject(URL_ELICITATION_REQUIRED, "open", raw({})), "git"), max_count=3)
    assert found[0].error.message == "open"
