"""The methods of MCP at the first door, over a real registry, router and server actor, in either era.

What a model may write instead of what it means is in `test_model_mistakes`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
import trio
from msgspec.structs import replace
from trio.testing import wait_all_tasks_blocked

from actors.errors import (
    InvalidArguments,
    MalformedRequest,
    ProtocolViolation,
    ServerError,
    UnknownPrompt,
)
from actors.facts import FactLog
from actors.messages import CallServer, Result
from actors.protocol.agreement.versions import Era
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError
from actors.registry.actor import Registry
from supervisor.config import ServerConfig, Settings
from supervisor.host.workbench import Workbench
from supervisor.identity.audit import NO_AUDIT
from supervisor.metatools.definitions import DEFINITIONS
from supervisor.metatools.discovery import search
from supervisor.metatools.lean import lean
from supervisor.metrics.meters import Meters
from supervisor.plugins.hooks import PluginTable
from supervisor.servers.launches.names import LaunchNames
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.asking.rounds import Parking
from supervisor.service.client import Client
from supervisor.service.forward import Forwarder
from supervisor.service.gateway import Gateway
from supervisor.service.plugins import CallHooks, PluginQuestions
from supervisor.service.port import answer
from supervisor.service.request import ServerRequest
from supervisor.service.tasks import HeldTasks
from supervisor.usage.records import CallArguments, CallRecord
from tests.fakes.deployments import deployment
from tests.fakes.embedder import FakeEmbedder, document_levels
from tests.fakes.exchanges import LEGACY, MODERN, exchange
from tests.fakes.failures import failure
from tests.fakes.lines import Lines
from tests.fakes.memory import MemoryPeer
from tests.fakes.published import served
from tests.fakes.router import FakeRouter
from tests.supervisor.service.asking.test_round_trips import round_trips

NESTED = b'{ "n" : 1.0, "big":123456789012345678901234567890 }'
SECRET = "canary-s3cr3t"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "n": {"type": "number"}}, "required": ["path"]}
TOOLS = [
    {"name": "read_file", "description": "Read a file.", "inputSchema": SCHEMA},
    {"name": "echo", "inputSchema": {"type": "object"}},
    {"name": "wrap", "inputSchema": {"type": "object", "properties": {"input": {"type": "object"}}}},
    {"name": "fails", "inputSchema": {"type": "object"}},
    {"name": "refuses", "inputSchema": {"type": "object"}},
    {"name": "leaks", "inputSchema": {"type": "object"}},
    {"name": "wants", "inputSchema": {"type": "object"}},
    {"name": "hangs", "inputSchema": {"type": "object"}},
]
LISTS = {
    "tools/list": {"tools": TOOLS},
    "resources/list": {"resources": [{"uri": "file:///a", "name": "a", "mimeType": "text/plain"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "file:///{x}", "name": "any"}]},
    "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]},
}
CAPABILITIES: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
ERRORS = {
    "refuses": {"code": -32000, "message": "no"},
    "leaks": {"code": -32603, "message": f"key {SECRET} is wrong", "data": {"key": SECRET}},
    "wants": {"code": -32021, "message": "needs sampling"},
}


@dataclass
class FileServer:
    """A server of either era; `asked` is every message it got, as bytes."""

    era: Era
    capabilities: dict[str, Any]
    asked: list[bytes] = field(default_factory=list)

    def last(self) -> Any:
        return json.loads(self.asked[-1])["params"]

    async def serve(self, peer: MemoryPeer) -> int:
        lines = Lines(peer)
        while (arrived := await lines.read()) is not None:
            for line in arrived:
                message = json.loads(line)
                self.asked.append(line)
                if "id" in message and (body := self.body(message["method"], message.get("params", {}))):
                    await peer.write(b'{"jsonrpc":"2.0","id":%b,%b}\n' % (json.dumps(message["id"]).encode(), body))
        return 0

    def body(self, method: str, params: Any) -> bytes:
        found = self.result(method, params)
        if isinstance(found, bytes) or not found:
            return b'"result":' + found if found else b""
        if "code" in found:
            return b'"error":' + json.dumps(found).encode()
        more = {"resultType": "complete", "ttlMs": 5, "cacheScope": "public"} if self.era == "modern" else {}
        return b'"result":' + json.dumps({**more, **found}).encode()

    def result(self, method: str, params: Any) -> Any:
        match method:
            case "server/discover" if self.era == "modern":
                return {"supportedVersions": ["2026-07-28"], "capabilities": self.capabilities}
            case "initialize" if self.era == "legacy":
                info = {"name": "files", "version": "1"}
                return {"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "serverInfo": info}
            case "tools/call":
                return self.called(params["name"])
            case "resources/read":
                return self.read(params["uri"])
            case "prompts/get":
                return {"messages": [], "got": params}
            case "completion/complete":
                return {"completion": {"values": ["a"]}, "got": params}
        return LISTS.get(method, {"code": -32601, "message": "unknown method"})

    def called(self, name: str) -> Any:
        if name in ERRORS:
            return ERRORS[name]
        if name == "hangs":
            return b""
        kind = b'"resultType":"complete",' if self.era == "modern" else b""
        failed = b"true" if name == "fails" else b"false"
        return b"{" + kind + b'"content":[],"isError":' + failed + b',"x":' + NESTED + b"}"

    def read(self, uri: str) -> Any:
        if uri in ("file:///a", "file:///c"):
            meta = {"ui": {"resourceUri": "ui://app"}}
            first = {"uri": uri, "text": "hello", "_meta": meta}
            return {"contents": [first, {"uri": "file:///b", "blob": "AAAA"}]}
        if uri == "file:///odd":
            return {"contents": 5}
        return {"code": -32002 if self.era == "legacy" else -32602, "message": f"not found: {uri}"}


FILES = ServerConfig(name="files", command="x", env={"KEY": SECRET, "TOKEN": "<your-token>"})


@dataclass
class Rig:
    """A gateway and what is behind it. `used` is what it counted, `refused` what reached no server, and why."""

    gateway: Gateway
    server: FileServer
    registry: Registry
    used: list[tuple[str, str, bool]]
    refused: list[tuple[str, str, str]]

    async def perform(self, client: Client, method: str, params: Any = None) -> Any:
        return json.loads(await self.raw(client, method, params))

    async def raw(self, client: Client, method: str, params: Any = None) -> bytes:
        data = b"" if params is None else json.dumps(params).encode()
        return await self.gateway.perform(exchange(client, method, data))

    async def call(self, name: str, arguments: Any, client: Client = LEGACY, **more: Any) -> Any:
        return await self.perform(client, "tools/call", {"name": name, "arguments": arguments, **more})

    async def execute(self, path: str, arguments: Any, client: Client = LEGACY) -> Any:
        return await self.call("execute_mcp_tool", {"tool_path": path, "arguments": arguments}, client)


@asynccontextmanager
async def gateway(
    era: Era = "legacy", capabilities: dict[str, Any] = CAPABILITIES, **settings: Any
) -> AsyncIterator[Rig]:
    server = FileServer(era, capabilities)
    used: list[tuple[str, str, bool]] = []
    refused: list[tuple[str, str, str]] = []

    def note(record: CallRecord, given: CallArguments | None = None) -> None:
        if record.server and record.outcome not in ("rejected", "cancelled"):
            used.append((record.server, record.tool, record.outcome in ("ok", "tool_error")))
        elif record.outcome == "rejected":
            refused.append((record.server, record.tool, record.error))

    async with served({"files": server}, Settings(**settings), era=era, used=note, entries=[FILES]) as running:
        yield Rig(running.gateway, server, running.registry, used, refused)


both = pytest.mark.parametrize("era", ["legacy", "modern"])


@pytest.mark.case("X11")
@both
async def test_a_result_of_the_same_era_passes_byte_for_byte(era: Era) -> None:
    client = LEGACY if era == "legacy" else MODERN
    async with gateway(era) as rig:
        kind = b'"resultType":"complete",' if era == "modern" else b""
        body = await rig.raw(client, "tools/call", {"name": "files-echo", "arguments": {}})
        assert body == b"{" + kind + b'"content":[],"isError":false,"x":' + NESTED + b"}"


@pytest.mark.parametrize(
    ("arguments", "what"), [({}, "missing path"), ({"n": 1}, "missing path"), ("x", "JSON object")]
)
async def test_wrong_arguments_are_answered_with_the_schema_before_the_server_is_asked(
    arguments: Any, what: str
) -> None:
    async with gateway() as rig:
        before = len(rig.server.asked)
        params = json.dumps({"name": "files-read_file", "arguments": arguments}).encode()
        told = json.loads((await answer(rig.gateway, exchange(MODERN, "tools/call", params))).body)
        assert told["result"]["resultType"] == "complete"
        error = failure(told)
        assert error["code"] == -32602
        assert error["message"].startswith("files:read_file: ")
        assert what in error["message"]
        assert error["message"].endswith(f". inputSchema: {json.dumps(SCHEMA, separators=(',', ':'))}")
        assert error["data"]["tool_path"] == "files:read_file"
        assert error["data"]["type"] == "invalid"
        assert len(rig.server.asked) == before
        assert rig.used == []
        assert rig.refused == [("files", "read_file", "invalid")]


@pytest.mark.case("C25")
@pytest.mark.parametrize("path", ["execute_mcp_tool", "gateway:execute_mcp_tool", "mcp__x__discover_mcp_tools"])
async def test_a_meta_tool_is_not_called_through_itself(path: str) -> None:
    async with gateway() as rig:
        found = await rig.execute(path, {"tool_path": path, "arguments": {}, "x": 1})
        assert "call it directly" in failure({"result": found})["message"]


async def test_what_a_server_gave_is_counted_whatever_is_shown_of_it() -> None:
    records: list[CallRecord] = []

    def note(record: CallRecord, given: CallArguments | None = None) -> None:
        records.append(record)

    large = {"content": [{"type": "text", "text": json.dumps({"id": 7, "rest": "x" * 50_000})}]}

    class Server(FileServer):
        def called(self, name: str) -> Any:
            return large

    asked = {"tool_path": "files:echo", "arguments": {}, "pick": ["$.id"]}
    params = json.dumps({"name": "execute_mcp_tool", "arguments": asked}).encode()
    async with served({"files": Server("legacy", CAPABILITIES)}, Settings(), used=note) as running:
        shown = await running.gateway.perform(exchange(LEGACY, "tools/call", params))
    (record,) = records
    assert (record.outcome, record.bytes_out, len(shown) < 1000) == ("ok", len(json.dumps(large)), True)


async def test_results_that_say_error_pass_and_errors_are_results_that_name_the_server() -> None:
    async with gateway() as rig:
        assert (await rig.execute("files:fails", {}))["isError"] is True
        error = failure({"result": await rig.execute("files:refuses", {})})
        assert (error["message"], error["code"]) == ("no (said by the server 'files')", -32000)
        assert (error["data"]["server"], error["data"]["outcome"]) == ("files", "completed")
        assert [good for _, _, good in rig.used] == [True, False]


async def test_a_server_without_its_service_is_answered_with_what_its_configuration_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(ERRORS, "refuses", {"code": -32603, "message": "fetch failed\n    at get (/srv/a.js:1:2)"})
    async with gateway() as rig:
        text = failure({"result": await rig.execute("files:refuses", {})})["message"]
    assert text.startswith("fetch failed (said by the server 'files'); the server could not reach its service;")
    assert text.endswith("a placeholder for TOKEN")


@pytest.mark.parametrize("code", [-32050, -32001, -1, 7])
async def test_a_clients_error_has_the_code_message_and_data_of_the_server(code: int) -> None:
    error = {"code": code, "message": "no", "data": {"why": [1.0]}}
    async with gateway() as rig:
        ERRORS["refuses"], usual = error, ERRORS["refuses"]
        try:
            for client in (LEGACY, MODERN):
                told = await answer(rig.gateway, exchange(client, "tools/call", b'{"name":"files-refuses"}'))
                data = failure(json.loads(told.body))["data"]
                assert {name: data[name] for name in error} == error
        finally:
            ERRORS["refuses"] = usual


def forwarder(answer: Callable[[CallServer], Result], plugins: PluginTable | None = None) -> Forwarder:
    """One before a server that gives this answer."""
    cell = deployment()
    elicitations = Elicitations(FactLog(lambda: 0.0))
    parking, bench, names = Parking(bytes(32)), Workbench(), LaunchNames(cell.value.mask)
    trips = round_trips(FakeRouter(answer), cell, parking)
    asking = PluginQuestions(parking, cell, elicitations, bench)
    hooks = CallHooks(plugins or PluginTable(), cell, bench, NO_AUDIT, asking)
    return Forwarder(trips, cell, bench, HeldTasks(cell, bytes(32)), elicitations, names, hooks, Meters())


@both
async def test_a_result_too_deep_to_be_fitted_to_the_client_is_the_servers_fault(era: Era) -> None:
    deep = msgspec.Raw(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b',"resultType":"x"}')
    forward = forwarder(lambda _: Result(deep, era))
    client = LEGACY if era == "modern" else MODERN
    with pytest.raises(ServerError) as caught:
        await forward.ask(
            exchange(client, "tools/call"),
            ServerRequest("files", "tools/call", b"", msgspec.Raw(b""), since=trio.current_time()),
        )
    assert caught.value.server == "files"
    assert caught.value.outcome != "not_sent"


@pytest.mark.case("S13")
@both
@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get", "completion/complete"])
async def test_a_result_with_an_integer_of_5000_digits_breaks_no_client(era: Era, method: str) -> None:
    numerous = msgspec.Raw(b'{"content":[],"structuredContent":{"n":%b}}' % (b"7" * 5000))
    forward = forwarder(lambda _: Result(numerous, era))
    for client in (LEGACY, MODERN):
        with pytest.raises(ProtocolViolation, match="over 4,300 digits, which hardly any client") as caught:
            await forward.ask(
                exchange(client, method),
                ServerRequest("files", method, b"", msgspec.Raw(b""), since=trio.current_time()),
            )
        assert (caught.value.server, caught.value.outcome) == ("files", "completed")


async def test_an_error_with_an_integer_of_5000_digits_arrives_without_its_data() -> None:
    def numerous(_: CallServer) -> Result:
        raise RemoteError(ErrorObject(-32050, "no", msgspec.Raw(b'{"n":%b}' % (b"7" * 5000))))

    forward = forwarder(numerous)
    with pytest.raises(RemoteError) as caught:
        await forward.ask(
            exchange(LEGACY, "tools/call"),
            ServerRequest("files", "tools/call", b"", msgspec.Raw(b""), since=trio.current_time()),
        )
    assert (caught.value.error.code, caught.value.error.message, bytes(caught.value.error.data)) == (-32050, "no", b"")


async def test_a_wish_for_what_no_client_has_is_a_failed_call() -> None:
    async with gateway("modern") as rig:
        for client in (LEGACY, MODERN):
            found = await rig.execute("files:wants", {}, client)
            assert found["isError"] is True
            assert ("resultType" in found) == (client is MODERN)


@pytest.mark.case("S27")
async def test_no_secret_of_a_server_is_in_its_errors() -> None:
    async with gateway() as rig:
        told = await answer(rig.gateway, exchange(LEGACY, "tools/call", b'{"name":"files-leaks"}'))
        assert SECRET.encode() not in told.body
        assert failure(json.loads(told.body))["data"]["data"] == {"key": "***"}


@pytest.mark.case("C12")
async def test_a_cancelled_call_is_neither_a_failure_nor_left_behind() -> None:
    async with gateway() as rig, trio.open_nursery() as nursery:
        nursery.start_soon(rig.execute, "files:hangs", {})
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await wait_all_tasks_blocked()
            assert rig.used == []
            assert b"notifications/cancelled" in rig.server.asked[-1]


@pytest.mark.case("C26")
async def test_only_what_may_travel_of_a_clients_meta_reaches_the_server() -> None:
    meta = {"progressToken": 1, "traceparent": "00-1", "io.modelcontextprotocol/clientInfo": {}, "own": 1}
    async with gateway() as rig:
        await rig.call("files-echo", {}, _meta=meta)
        assert rig.server.last()["_meta"] == {"traceparent": "00-1", "own": 1}


@pytest.mark.case("L19")
@both
@pytest.mark.parametrize("name", ["files|file:///a", "Files|file:///a", "mcp://files/file:///a"])
async def test_a_resource_is_read_under_the_uris_of_the_list(era: Era, name: str) -> None:
    async with gateway(era) as rig:
        listed = (await rig.perform(LEGACY, "resources/list"))["resources"][0]["uri"]
        for client in (LEGACY, MODERN):
            found = await rig.perform(client, "resources/read", {"uri": name})
            first, second = found["contents"]
            assert (first["uri"], first["text"]) == (listed, "hello")
            assert first["_meta"]["ui"] == {"resourceUri": "mcp://files/ui://app"}
            assert second == {"uri": "mcp://files/file:///b", "blob": "AAAA"}
            assert ("resultType" in found) == ("ttlMs" in found) == (client is MODERN)
            assert found.get("cacheScope") == ("private" if client is MODERN else None)


async def test_a_uri_by_itself_is_read_from_the_only_server_that_can_have_it() -> None:
    async with gateway() as rig:
        for uri in ("file:///a", "file:///c"):  # listed, and of a template
            found = await rig.perform(LEGACY, "resources/read", {"uri": uri})
            assert [item["uri"] for item in found["contents"]] == [uri, "file:///b"]
            assert rig.server.last() == {"uri": uri}
            assert (await rig.call("read_mcp_resource", {"uri": uri}))["content"][0]["text"] == "hello"


@both
async def test_a_model_reads_texts_as_text_and_bytes_under_a_uri(era: Era) -> None:
    async with gateway(era) as rig:
        found = await rig.call("read_mcp_resource", {"uri": "files|file:///a"})
        assert found["content"] == [
            {"type": "text", "text": "hello"},
            {"type": "resource", "resource": {"uri": "mcp://files/file:///b", "blob": "AAAA"}},
        ]
        first, second = found["structuredContent"]["contents"]
        assert first["uri"] == "files|file:///a"
        assert first["_meta"]["ui"] == {"resourceUri": "files|ui://app"}
        assert second == {"uri": "files|file:///b", "blob": "AAAA"}
        assert "resultType" not in found["structuredContent"]


@both
@pytest.mark.parametrize("uri", ["files|file:///none", "nobody|file:///a", "file:///a/b", "|", "mcp://x"])
async def test_a_missing_resource_has_the_code_of_the_clients_era(era: Era, uri: str) -> None:
    async with gateway(era) as rig:
        for client, code in ((LEGACY, -32002), (MODERN, -32602)):
            with pytest.raises(RemoteError) as caught:
                await rig.perform(client, "resources/read", {"uri": uri})
            assert caught.value.error.code == code
            assert json.loads(bytes(caught.value.error.data))["uri"] == uri
            error = failure({"result": await rig.call("read_mcp_resource", {"uri": uri}, client)})
            assert error["code"] == code
            assert error["data"].get("uri", error["data"].get("data", {}).get("uri")) == uri


async def test_an_answer_that_is_no_resource_is_the_servers_fault() -> None:
    async with gateway() as rig:
        for client in (LEGACY, MODERN):
            with pytest.raises(ServerError, match="no resource"):
                await rig.perform(client, "resources/read", {"uri": "files|file:///odd"})


async def test_prompts_and_completion_reach_their_server_under_its_own_names() -> None:
    async with gateway() as rig:
        found = await rig.perform(LEGACY, "prompts/get", {"name": "files-greet", "arguments": {"who": "you"}})
        assert found["got"] == {"name": "greet", "arguments": {"who": "you"}}
        assert (await rig.perform(LEGACY, "prompts/get", {"name": "files:greet"}))["got"] == {"name": "greet"}
        argument = {"name": "who", "value": "y"}
        for ref, own in (
            ({"type": "ref/prompt", "name": "files-greet"}, {"type": "ref/prompt", "name": "greet"}),
            (
                {"type": "ref/resource", "uri": "mcp://files/file:///{x}"},
                {"type": "ref/resource", "uri": "file:///{x}"},
            ),
        ):
            found = await rig.perform(LEGACY, "completion/complete", {"ref": ref, "argument": argument})
            assert found["got"] == {"ref": own, "argument": argument}


async def test_unknown_prompts_and_broken_references_are_refused() -> None:
    async with gateway() as rig:
        with pytest.raises(UnknownPrompt):
            await rig.perform(LEGACY, "prompts/get", {"name": "files-none"})
        wrong: list[Any] = [
            {},
            {"ref": {}, "argument": {}},
            {"ref": {"type": "ref/prompt"}, "argument": {}},
            {"ref": 5},
        ]
        for params in wrong:
            with pytest.raises(InvalidArguments, match="completion/complete"):
                await rig.perform(LEGACY, "completion/complete", params)


async def test_lists_show_the_names_of_the_front() -> None:
    async with gateway() as rig:
        tools = await rig.perform(LEGACY, "tools/list")
        assert [tool["name"] for tool in tools["tools"]][:2] == ["discover_mcp_tools", "execute_mcp_tool"]
        assert (await rig.perform(LEGACY, "resources/list"))["resources"][0]["uri"] == "mcp://files/file:///a"
        templates = await rig.perform(LEGACY, "resources/templates/list", {})
        assert templates["resourceTemplates"][0]["uriTemplate"] == "mcp://files/file:///{x}"
        assert (await rig.perform(LEGACY, "prompts/list", {"cursor": None}))["prompts"][0]["name"] == "files-greet"
        modern = await rig.perform(MODERN, "resources/list")
        assert (modern["resultType"], modern["cacheScope"]) == ("complete", "private")
        for method in ("tools/list", "resources/list", "prompts/list"):
            for cursor in ("", "x", 5):
                with pytest.raises(InvalidArguments, match="cursor"):
                    await rig.perform(LEGACY, method, {"cursor": cursor})
        listed = (await rig.call("list_mcp_resources", {}))["structuredContent"]
        assert (listed["total_resources"], listed["total_templates"]) == (1, 1)


async def test_the_four_tools_tell_a_client_that_searches_itself_to_show_them() -> None:
    async with gateway() as rig:
        for client in (MODERN, LEGACY, Client(version="2025-06-18")):
            tools = (await rig.perform(client, "tools/list"))["tools"]
            assert all(tool["_meta"]["anthropic/alwaysLoad"] is True for tool in tools)
            assert len({tool["_meta"]["anthropic/searchHint"] for tool in tools}) == 4
            assert not any("anthropic/maxResultSizeChars" in tool["_meta"] for tool in tools)
        before = Client(version="2025-03-26")  # which has no `_meta` there
        assert (await rig.perform(before, "tools/list"))["tools"] == list(DEFINITIONS)
    async with gateway(client_hints=False) as rig:
        assert (await rig.perform(MODERN, "tools/list"))["tools"] == list(DEFINITIONS)


async def test_a_result_within_a_budget_is_not_for_the_client_to_cut() -> None:
    async with gateway(result_token_budget=5000) as rig:
        tools = (await rig.perform(MODERN, "tools/list"))["tools"]
        told = {tool["name"]: tool["_meta"].get("anthropic/maxResultSizeChars") for tool in tools}
        assert {name for name, chars in told.items() if chars == 500_000} == {"execute_mcp_tool", "read_mcp_resource"}


async def test_discovery_answers_text_and_structure() -> None:
    async with gateway() as rig:
        found = await rig.call("discover_mcp_tools", {"query": "read a file", "limit": "3"})
        answered = found["structuredContent"]
        assert json.loads(found["content"][0]["text"]) == answered
        named = await rig.call("discover_mcp_tools", {"query": "read a file"}, replace(LEGACY, name="some client"))
        assert json.loads(named["content"][0]["text"]) == lean(named["structuredContent"])
        assert answered["tools"][0]["tool_path"] == "files:read_file"
        assert answered["tools"][0].keys() >= {"server_name", "transport", "relevance_score", "description"}
        assert answered["tools"][0]["inputSchema"] == SCHEMA
        modern = await rig.call("discover_mcp_tools", {"query": "x" * 100_000}, MODERN)
        assert modern["resultType"] == "complete"
        assert modern["structuredContent"]["tools"] == []


@pytest.mark.parametrize(
    ("setting", "name", "has_it"),
    [
        ("auto", "claude-code", False),
        ("auto", "codex-mcp-client", False),
        ("auto", "Visual Studio Code", False),
        ("auto", "any other", True),
        ("auto", "", True),
        ("always", "claude-code", True),
        ("never", "any other", False),
    ],
)
async def test_a_client_that_shows_its_model_structured_content_alone_gets_the_text_alone(
    setting: str, name: str, has_it: bool
) -> None:
    async with gateway(discover_structured=setting) as rig:
        for era in (LEGACY, MODERN):
            found = await rig.call("discover_mcp_tools", {"query": "read a file"}, replace(era, name=name))
            assert ("structuredContent" in found) is has_it
            assert json.loads(found["content"][0]["text"])["tools"][0]["tool_path"] == "files:read_file"


async def test_a_search_that_embeds_its_query_runs_off_the_loop() -> None:
    threads: list[bool] = []

    class Watched(FakeEmbedder):
        def embed_query(self, text: str) -> npt.NDArray[np.float32]:
            threads.append(threading.current_thread() is threading.main_thread())
            return super().embed_query(text)

    async with gateway() as rig:
        embedder = Watched({"beasts": "file"})
        cell = rig.registry.catalogue
        rows = {s.server: document_levels(embedder, s.documents) for s in cell.value.index.segments}
        cell.set(replace(cell.value, index=cell.value.index.with_meanings(embedder, rows)))
        found = await rig.call("discover_mcp_tools", {"query": "read my beasts"})
        assert found["structuredContent"]["tools"][0]["tool_path"] == "files:read_file"
        assert threads == [False]


async def test_each_of_several_needs_is_searched_for_off_the_loop_in_a_turn_of_its_own() -> None:
    searched: list[tuple[str, bool]] = []

    def watched(seen: Any, wanted: Any, *more: Any) -> Any:
        searched.append((wanted.query, threading.current_thread() is threading.main_thread()))
        return search(seen, wanted, *more)

    async with gateway() as rig:
        with mock.patch("supervisor.service.calls.meta_calls.search", watched):
            asked = {"query": "read a file", "queries": ["files:*", "READ  a file"]}
            found = await rig.call("discover_mcp_tools", asked)
        assert searched == [("read a file", False), ("files:*", False)]
        first, second, *_ = found["structuredContent"]["tools"]
        assert (first["tool_path"], first["queries"]) == ("files:read_file", [1, 2])
        assert (second["tool_path"], second["queries"]) == ("files:echo", [2])


@pytest.mark.parametrize("params", [None, {}, {"name": 5}, {"arguments": {}}, [1], "x"])
async def test_a_call_without_a_name_is_refused(params: Any) -> None:
    async with gateway() as rig:
        with pytest.raises(InvalidArguments, match="tools/call"):
            await rig.perform(LEGACY, "tools/call", params)


async def test_methods_belong_to_their_era() -> None:
    async with gateway() as rig:
        assert await rig.perform(LEGACY, "ping") == {}
        assert (await rig.perform(MODERN, "server/discover"))["supportedVersions"] == ["2026-07-28"]
        for client, method in (
            (MODERN, "ping"),
            (MODERN, "initialize"),
            (LEGACY, "server/discover"),
            (LEGACY, "nothing"),
            (LEGACY, "logging/setLevel"),
        ):
            refused = json.loads((await answer(rig.gateway, exchange(client, method, b""))).body)["error"]
            assert (refused["code"], method in refused["message"]) == (-32601, True)


async def test_capabilities_say_what_is_told() -> None:
    for told in (True, False):
        async with gateway(notify_catalogue_changes=told) as rig:
            body = await rig.perform(LEGACY, "initialize")
            assert body["capabilities"]["tools"] == {"listChanged": told}
            assert (rig.gateway.revisions.tools > 0) == told
            assert "logging" not in body["capabilities"]


@pytest.mark.parametrize(
    ("declared", "told"), [({"completions": {}}, True), ({"completions": None}, False), ({"tools": {}}, False)]
)
async def test_completions_are_announced_if_a_server_has_them(declared: dict[str, Any], told: bool) -> None:
    async with gateway(capabilities={"prompts": {}, **declared}) as rig:
        for version in ("2025-03-26", "2025-11-25"):
            body = await rig.perform(Client(version=version), "initialize")
            assert body["protocolVersion"] == version
            assert ("completions" in body["capabilities"]) == told
        assert "completions" not in (await rig.perform(Client(version="2024-11-05"), "initialize"))["capabilities"]
        assert ("completions" in (await rig.perform(MODERN, "server/discover"))["capabilities"]) == told


# Bounds ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        b'{"text":"' + b"x" * 1_000_000 + b'"}',
        b'{"rows":[' + b",".join([b"[]"] * 300_000) + b"]}",
        b"{" + b",".join(b'"k%d":0' % number for number in range(80_000)) + b"}",
    ],
)
async def test_a_large_call_reaches_the_server_as_the_bytes_it_was(arguments: bytes) -> None:
    async with gateway() as rig:
        for params in (
            b'{"name":"execute_mcp_tool","arguments":{"tool_path":"files:echo","arguments":%b}}' % arguments,
            b'{"name":"files-echo","arguments":%b}' % arguments,
        ):
            await rig.gateway.perform(exchange(LEGACY, "tools/call", params))
            assert b'"arguments":' + arguments in rig.server.asked[-1]


@pytest.mark.case("C03")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", b'{"name":"files-echo","arguments":{"n":%b}}'),
        ("tools/call", b'{"name":"execute_mcp_tool","arguments":{"tool_path":"files:echo","arguments":{"n":%b}}}'),
        ("prompts/get", b'{"name":"files-greet","arguments":{"n":%b}}'),
    ],
)
async def test_an_integer_of_5000_digits_is_refused_before_a_server_has_to_read_it(method: str, params: bytes) -> None:
    async with gateway() as rig:
        before = len(rig.server.asked)
        told = json.loads((await answer(rig.gateway, exchange(LEGACY, method, params % (b"7" * 5000)))).body)
        error = failure(told) if method == "tools/call" else told["error"]
        assert error["code"] == -32602
        assert "over 4,300 digits" in error["message"]
        assert len(rig.server.asked) == before


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", b'{"name":"discover_mcp_tools","arguments":{"query":"x","n":%b,"kinds":%b,"servers":%b}}'),
        ("tools/call", b'{"name":"read_mcp_resource","arguments":{"uri":%b,"server":%b,"x":%b}}'),
        ("tools/call", b'{"name":"execute_mcp_tool","arguments":{"tool_path":%b,"arguments":%b,"x":%b}}'),
        ("tools/call", b'{"name":"list_mcp_resources","arguments":{"x":%b,"y":%b,"z":%b}}'),
        ("tools/call", b'{"name":%b,"arguments":%b,"_meta":%b}'),
        ("resources/list", b'{"cursor":%b,"x":%b,"y":%b}'),
        ("resources/read", b'{"uri":%b,"x":%b,"y":%b}'),
        ("prompts/get", b'{"name":%b,"arguments":%b,"y":%b}'),
        ("completion/complete", b'{"ref":{"type":"ref/prompt","name":%b},"argument":{"a":%b},"context":%b}'),
        ("completion/complete", b'{"ref":%b,"argument":%b,"context":%b}'),
    ],
)
async def test_no_decoder_breaks_on_an_integer_of_5000_digits(method: str, params: bytes) -> None:
    async with gateway() as rig:
        text = msgspec.Raw(params % ((b"7" * 5000,) * 3))
        told = json.loads((await answer(rig.gateway, exchange(LEGACY, method, bytes(text)))).body, parse_int=str)
        assert told.get("error", {}).get("code") != "-32603"


async def test_meta_of_megabytes_is_refused() -> None:
    async with gateway() as rig:
        meta = b"{" + b",".join(b'"k%d":0' % number for number in range(20_000)) + b"}"
        with pytest.raises(MalformedRequest, match="'_meta' has"):
            await rig.gateway.perform(exchange(LEGACY, "tools/call", b'{"name":"files-echo","_meta":%b}' % meta))


async def test_a_completion_of_megabytes_is_refused() -> None:
    async with gateway() as rig:
        with pytest.raises(InvalidArguments, match="params over"):
            await rig.perform(LEGACY, "completion/complete", {"ref": {}, "argument": {"x": [[]] * 50_000}})


# Lists and failed calls, through the whole ---------------------------------------------------------------------------


async def test_resources_are_listed_of_one_server_and_by_words() -> None:
    async with gateway() as rig:
        for arguments, total in (({"server": "files"}, 1), ({"query": "nothing"}, 0), ({"server": "Files"}, 1)):
            page = (await rig.call("list_mcp_resources", arguments))["structuredContent"]
            assert (page["total_resources"], "notice" in page) == (total, total == 0)
        unknown = (await rig.call("list_mcp_resources", {"server": ["nosuch", "jira", "other"]}))["structuredContent"]
        assert unknown["notice"] == "There is no server 'jira'."
        assert unknown["resources"] == []


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("discover_mcp_tools", {"query": "*", "cursor": "x"}, "'cursor' is not one"),
        ("discover_mcp_tools", {}, "'query' must be"),
        ("list_mcp_resources", {"cursor": 5}, "'cursor' must be"),
        ("list_mcp_resources", [1], "must be a JSON object"),
        ("list_mcp_resources", {"query": ["x"] * 101}, "101 queries at once"),
        ("read_mcp_resource", {}, "'uri' must be"),
        ("files-none", {}, "has no tool 'none'"),
        ("none", {}, "there is no tool 'none'"),
    ],
)
async def test_a_wrong_call_is_a_result_in_both_eras(name: str, arguments: Any, words: str) -> None:
    async with gateway() as rig:
        for client in (LEGACY, MODERN):
            found = await rig.call(name, arguments, client)
            assert words in failure({"result": found})["message"]
            assert ("resultType" in found) == (client is MODERN)
