"""A call runs on the server that was named or nowhere: through the gateway to servers that say what reached them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from actors.life.states import State
from actors.messages import RefreshServer
from tests.fakes.failures import failure
from tests.fakes.mcp_server import FakeServer
from tests.fakes.published import Published, Publisher, published, served

EMPTY = {"type": "object"}


def tools(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "description": f"Does {name}.", "inputSchema": EMPTY} for name in names]


def reached(servers: Mapping[str, Publisher]) -> list[str]:
    """Return what was called: `server:tool`."""
    return [f"{name}:{tool}" for name, server in servers.items() for tool, _ in server.called]


class Prompter(Publisher):
    """A server of prompts; each says which server it is of, and its own name."""

    def __init__(self, server: str, *prompts: str) -> None:
        super().__init__([])
        self._server = server
        self._prompts = prompts

    def answer(self, method: str, params: Any) -> dict[str, Any]:
        match method:
            case "initialize":
                initialized = super().answer(method, params)
                initialized["result"]["capabilities"] = {"prompts": {}}
                return initialized
            case "prompts/list":
                return {"result": {"prompts": [{"name": name, "description": "A prompt."} for name in self._prompts]}}
            case "prompts/get":
                return {"result": {"messages": [self._server, params["name"]]}}
        return super().answer(method, params)


async def run(found: Published, path: str) -> tuple[Any, list[str]]:
    """Execute a path and call it directly; return the last error, None if there was none, and what was called."""
    for name, arguments in (("execute_mcp_tool", {"tool_path": path, "arguments": {}}), (path, {})):
        answer = await found.answer({"name": name, "arguments": arguments})
    return failure(answer) if answer["result"].get("isError") else None, [
        f"{server}:{tool}" for server, tool, _ in found.take_calls()
    ]


@pytest.mark.case("X03")
@pytest.mark.parametrize(
    ("servers", "path"),
    [
        ({"db": ["read"], "dbprod": ["drop"]}, "db:prod_drop"),
        ({"db": ["read"], "dbprod": ["drop"]}, "db-prod-drop"),
        ({"git-hub": ["read"], "github": ["delete_repo"]}, "git-hub:delete_repo"),
        ({"git.hub": ["read"], "git": ["hub:delete_repo"]}, "git.hub:delete_repo"),
        ({"git-hub": ["read"], "github": ["delete_repo"]}, "mcp__git-hub__delete_repo"),
        ({"git-hub": ["read"], "github": ["delete_repo"]}, "git-hub/delete-repo"),
        ({"git.hub": ["read"], "git": ["hub:delete_repo"]}, '"git.hub: delete_repo"'),
    ],
)
async def test_a_named_server_that_lacks_the_tool_is_not_replaced_by_another(
    servers: dict[str, list[str]], path: str
) -> None:
    async with published(**{name: tools(*offered) for name, offered in servers.items()}) as found:
        error, called = await run(found, path)
        assert called == []
        named = next(iter(servers))
        assert error["code"] == -32602
        assert error["message"].startswith(f"server '{named}' has no tool ")
        assert all(near.startswith(f"{named}:") for near in error["data"]["nearest"])


@pytest.mark.case("X03")
async def test_a_name_with_two_meanings_is_answered_with_both() -> None:
    async with published(**{"p": tools("x-y"), "p-x": tools("y")}) as found:
        error, called = await run(found, "p-x-y")
        assert called == []
        assert (error["code"], error["data"]["type"]) == (-32602, "ambiguous")
        assert error["data"]["readings"] == ["p-x:y", "p:x-y"]
        assert "'p-x:y' or 'p:x-y'" in error["message"]
        for path in error["data"]["readings"]:
            assert await run(found, path) == (None, [path, path])


@pytest.mark.parametrize(
    ("beside", "path", "expected"),
    [
        ("git", "hub:delete", ["git:hub:delete"]),
        ("git", "git-hub:delete", ["git:hub:delete"]),
        ("a", "a-b-wipe", ["a:b-wipe"]),
        ("A", "mcp__a__b_wipe", ["a:b-wipe"]),
        ("a-b", "wipe", ["a-b:wipe"]),
        ("a", "a-b:wipe", []),
        ("hub", "delete_it", []),
        ("nobody", "a-b:wipe", []),
        ("nobody", "wipe", []),
    ],
)
async def test_a_server_beside_the_path_is_the_one_that_is_called(beside: str, path: str, expected: list[str]) -> None:
    servers = {"git": tools("hub:delete"), "hub": tools("x"), "a": tools("b-wipe"), "a-b": tools("wipe")}
    async with published(**servers) as found:
        given = {"server": beside, "tool_path": path, "arguments": {"n": 1}}
        answer = await found.answer({"name": "execute_mcp_tool", "arguments": given})
        assert [f"{server}:{tool}" for server, tool, _ in found.take_calls()] == expected
        assert answer["result"]["isError"] == (not expected)


async def test_a_server_among_the_arguments_is_an_argument() -> None:
    schema = {"type": "object", "properties": {"server": {"type": "string"}, "input": {"type": "string"}}}
    query = {"name": "query", "description": "Asks.", "inputSchema": schema}
    async with published(db=[query], replica=tools("query")) as found:
        flat: list[dict[str, Any]] = [{}, {"input": "x"}, {"arguments": {}}]
        for more in flat:
            given = {"tool_path": "db:query", "server": "replica", **more}
            assert not (await found.answer({"name": "execute_mcp_tool", "arguments": given}))["result"]["isError"]
            ((server, _, arguments),) = found.take_calls()
            assert (server, arguments["server"]) == ("db", "replica")


TWO_SERVERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"server": "staging", "tool_path": "prod:drop", "arguments": {}}, ["prod:drop", "staging:prod:drop"]),
    ({"server": "staging", "tool_path": "prod:drop"}, ["prod:drop", "staging:prod:drop"]),
    ({"server": "staging", "tool_path": "prod:drop", "table": "t"}, ["prod:drop", "staging:prod:drop"]),
    ({"server": "staging", "tool_path": "prod:drop", "arguments": {"table": "t"}}, ["prod:drop", "staging:prod:drop"]),
    ({"server": "Staging", "tool_path": "Prod:drop", "arguments": {}}, ["prod:drop", "staging:Prod:drop"]),
    ({"server": "staging", "arguments": {"tool_path": "prod:drop"}}, ["prod:drop", "staging:prod:drop"]),
    ({"arguments": {"tool_path": "prod:drop", "server": "staging"}}, ["prod:drop", "staging:prod:drop"]),
    ({"server": "staging", "tool_path": {"server": "prod", "tool": "drop"}}, []),
    ({"server": "staging", "arguments": {"tool_path": "drop", "server": "prod", "arguments": {}}}, []),
    ({"server": "staging", "server_name": "prod", "tool_path": "drop"}, ["staging:drop", "prod:drop"]),
    ({"servers": ["staging", "prod"], "tool_path": "drop", "arguments": {}}, ["staging:drop", "prod:drop"]),
    ({"tool_path": "staging:drop", "tool": "prod:drop", "arguments": {"table": "t"}}, ["staging:drop", "prod:drop"]),
    ({"tool_path": ["staging", "drop"], "server": "prod"}, ["staging:drop", "prod:staging:drop"]),
]


@pytest.mark.parametrize(("given", "readings"), TWO_SERVERS)
async def test_a_call_that_names_two_servers_runs_on_none(given: dict[str, Any], readings: list[str]) -> None:
    async with published(staging=tools("drop"), prod=tools("drop")) as found:
        answer = await found.answer({"name": "execute_mcp_tool", "arguments": given})
        assert found.take_calls() == []
        error = failure(answer)
        assert error["code"] == -32602
        if readings:
            assert error["data"]["readings"] == readings
            assert all(repr(path) in error["message"] for path in readings)


@pytest.mark.parametrize("more", [{}, {"arguments": {}}, {"arguments": {"table": "t"}}, {"table": "t"}])
async def test_an_unknown_server_beside_a_whole_path_is_an_error(more: dict[str, Any]) -> None:
    async with published(staging=tools("drop"), prod=tools("drop")) as found:
        given = {"server": "producton", "tool_path": "prod:drop", **more}
        error = failure(await found.answer({"name": "execute_mcp_tool", "arguments": given}))
        assert found.take_calls() == []
        assert "no server 'producton' is configured" in error["message"]
        assert "prod:drop" in error["data"]["nearest"]


async def test_the_same_server_twice_is_one() -> None:
    async with published(staging=tools("drop"), prod=tools("drop")) as found:
        for given in (
            {"server": "prod", "tool_path": "prod:drop", "arguments": {}},
            {"server": "prod", "server_name": "prod", "tool_path": "drop", "arguments": {}},
            {"server": "prod", "arguments": {"tool_path": "prod:drop", "server": "prod"}},
            {"server": "PROD", "tool_path": "prod:drop"},
        ):
            assert not (await found.answer({"name": "execute_mcp_tool", "arguments": given}))["result"]["isError"]
            assert found.take_calls() == [("prod", "drop", {})]


async def test_whatever_stands_beside_a_whole_call_it_is_answered() -> None:
    beside: list[Any] = [[], {}, [["a"]], {"a": []}, None, 5, True, "a b: c"]
    async with published(prod=tools("drop")) as found:
        for odd in beside:
            given = {"tool_path": "prod:drop", "name": odd, "tool": odd, "arguments": {"table": "a"}}
            assert "result" in await found.answer({"name": "execute_mcp_tool", "arguments": given})


async def test_two_objects_of_arguments_are_an_error_not_a_choice() -> None:
    async with published(prod=tools("drop")) as found:
        given = {"tool_path": "prod:drop", "arguments": {"table": "a"}, "params": {"table": "b"}}
        error = failure(await found.answer({"name": "execute_mcp_tool", "arguments": given}))
        assert "'arguments' and 'params' are two objects of arguments" in error["message"]
        assert found.take_calls() == []


async def test_a_name_cut_short_is_no_other_name() -> None:
    async with published(db=tools("drop")) as found:
        for path in ("db:drop" + " " * 1500 + "not", "db:" + " " * 1500 + "drop", "x" * 5000, "x" * 900 + "\x1b[31m"):
            error, called = await run(found, path)
            assert (error["code"], called) == (-32602, [])
            assert "\x1b" not in error["message"]


async def test_a_tool_that_is_called_like_a_meta_tool_is_called() -> None:
    async with published(discover=tools("mcp_tools")) as found:
        assert (await run(found, "discover-mcp_tools"))[1] == ["discover:mcp_tools"] * 2


async def test_a_server_not_seen_so_far_takes_part_in_what_a_name_can_mean() -> None:
    servers = {"a": Publisher(tools("b-wipe")), "a-b": Publisher(tools("wipe"))}
    async with served(servers, undiscovered={"a-b"}) as found:
        for ask in (found.execute("a-b-wipe"), found.ask("tools/call", name="a-b-wipe", arguments={})):
            assert failure(await ask)["data"]["readings"] == ["a-b:wipe", "a:b-wipe"]
        assert reached(servers) == []
        await found.execute("a-b:wipe")
        assert reached(servers) == ["a-b:wipe"]


async def test_a_server_that_is_switched_off_is_said_to_be_and_no_other_takes_its_call() -> None:
    servers = {"slack-bot": Publisher(tools("post", "slack:post")), "chrome": Publisher(tools("list_messages"))}
    async with served(servers, also={"slack": "slack"}) as found:
        found.report("slack", State.STOPPED, disabled=True)
        answers = [
            {"error": failure(await found.execute("slack:post"))},
            {"error": failure(await found.execute("slack-post"))},
            {"error": failure(await found.execute("Slack:list_messages"))},
            await found.ask("prompts/get", name="slack:post"),
            await found.ask("resources/read", uri="slack|file:///a"),
        ]
        for answer in answers:
            assert answer["error"]["data"]["type"] == "disabled"
            assert answer["error"]["message"].startswith("server 'slack' is not available: it is switched off")
        assert reached(servers) == []
        page = await found.discover("slack:*")
        assert page["tools"] == []
        assert page["notice"].startswith("slack is not available (it is switched off")


async def test_a_server_that_cannot_run_is_answered_for_with_the_reason() -> None:
    servers = {"far-away": Publisher(tools("go"))}
    async with served(servers, also={"far": "far"}) as found:
        found.report("far", State.FAILED, reason="http servers are not supported")
        for path in ("far:go", "far:away-go"):
            said = failure(await found.execute(path))["message"]
            assert said.startswith("server 'far' cannot be used: http servers are not supported;")
            assert said.endswith("will not help: tell the user")
        assert failure(await found.execute("far-away-go"))["data"]["readings"] == ["far-away:go", "far:away-go"]
        assert reached(servers) == []


async def test_the_full_name_of_an_entry_means_its_server() -> None:
    servers = {"filesystem": Publisher(tools("read_file"))}
    async with served(servers, also={"filesystem-john-abc123": "filesystem"}) as found:
        for path in ("filesystem-read_file", "filesystem-john-abc123-read_file", "filesystem-john-abc123:read_file"):
            assert not (await found.ask("tools/call", name=path, arguments={}))["result"]["isError"]
        assert reached(servers) == ["filesystem:read_file"] * 3


async def test_the_uri_of_a_link_is_read_where_it_belongs_or_the_error_says_what_to_write() -> None:
    servers = {"a": Publisher([]), "b": Publisher([])}  # both list file:///readme.md
    async with served(servers) as found:
        link = {"uri": "file:///readme.md"}
        for answer in (
            {"error": failure(await found.ask("tools/call", name="read_mcp_resource", arguments=link))},
            await found.ask("resources/read", uri=link["uri"]),
        ):
            assert answer["error"]["code"] == -32602
            assert answer["error"]["data"]["readings"] == ["a|file:///readme.md", "b|file:///readme.md"]
        for uri in answer["error"]["data"]["readings"]:
            assert "result" in await found.ask("resources/read", uri=uri)


async def test_two_prompts_never_have_one_name() -> None:
    servers = {"a": Prompter("a", "b-c", "d"), "a-b": Prompter("a-b", "c", "d")}
    async with served(servers) as found:
        listed = [prompt["name"] for prompt in (await found.ask("prompts/list"))["result"]["prompts"]]
        assert listed == ["a:b-c", "a-d", "a-b:c", "a-b-d"]
        got = [(await found.ask("prompts/get", name=name))["result"]["messages"] for name in listed]
        assert got == [["a", "b-c"], ["a", "d"], ["a-b", "c"], ["a-b", "d"]]
        ambiguous = (await found.ask("prompts/get", name="a-b-c"))["error"]
        assert ambiguous["data"]["readings"] == ["a-b:c", "a:b-c"]
        query = {"query": "prompt", "kinds": ["prompt"]}
        rows = (await found.ask("tools/call", name="discover_mcp_tools", arguments=query))["result"]
        assert sorted(row["prompt"] for row in rows["structuredContent"]["tools"]) == sorted(listed)


async def test_a_path_of_a_server_that_is_not_configured_says_so() -> None:
    async with served({"github": Publisher(tools("create_issue"))}) as found:
        said = failure(await found.execute("jira:create_issue"))["message"]
        assert said.startswith(
            "there is no tool 'jira:create_issue', as no server 'jira' is configured; did you mean github:"
        )
        for path in ("github:create_isue", "github-create_isue"):
            said = failure(await found.execute(path))["message"]
            assert said.startswith("server 'github' has no tool 'create_isue'; did you mean github:create_issue?")
        assert "is configured" not in failure(await found.execute("create issue: now"))["message"]


async def test_a_tool_that_is_called_otherwise_now_is_named_and_not_called() -> None:
    server = Publisher([{**tools("open_ticket")[0], "description": "Opens a ticket."}])
    async with served({"desk": server}) as found:
        server.tools = [{**tools("create_ticket")[0], "description": "Opens a ticket."}]
        refreshed = await found.router.address.ask(RefreshServer(server="desk"))
        assert refreshed.renamed == {"open_ticket": "create_ticket"}
        catalogue = found.registry.catalogue
        with trio.fail_after(30):
            while "create_ticket" not in catalogue.value.entries["desk"].tools:
                await catalogue.wait_newer(catalogue.version)
        for path in ("desk:open_ticket", "desk-open_ticket"):
            error = failure(await found.execute(path))
            assert error["message"].startswith(
                "server 'desk' has no tool 'open_ticket' any more: it is called 'desk:create_ticket' now; nothing was"
            )
            assert error["data"]["renamed"] == "desk:create_ticket"
        assert server.called == []


async def test_a_server_whose_list_of_tools_cannot_be_read_says_so_and_why() -> None:
    fake = FakeServer(errors_at={"tools/list": {"code": -32603, "message": "no database"}})
    async with served({"desk": fake}) as found:
        why = "its list of tools could not be read to its end (tools/list: "
        error = failure(await found.execute("desk:open_ticket"))
        assert (error["data"]["type"], error["data"]["outcome"]) == ("not_found", "not_sent")
        assert why in error["message"]
        assert "no database" in error["message"]
        assert "list its tools" not in error["message"]
        for query in ("desk:*", "desk:open_ticket"):
            rows = await found.ask("tools/call", name="discover_mcp_tools", arguments={"query": query})
            notice = rows["result"]["structuredContent"]["notice"]
            assert why in notice
            assert "no database" in notice
