"""Which messages have a tool of a server called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from supervisor.front.calls import calls_a_tool
from supervisor.front.messages import read


def message(method: str = "tools/call", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        *((name, False) for name in ("discover_mcp_tools", "list_mcp_resources", "read_mcp_resource")),
        *(
            (name, True)
            for name in (
                "execute_mcp_tool",
                "execute_read_only_mcp_tool",
                "executeMcpTool",
                "discover-mcp-tools",
                "notes:add",
                "",
                5,
            )
        ),
    ],
)
def test_only_the_meta_tools_that_read_are_no_calls(name: Any, calls: bool) -> None:
    sent = read(json.dumps(message(name=name)).encode())
    assert calls_a_tool(sent, "") is calls
    assert calls_a_tool(sent, "all")
    assert calls_a_tool(sent, "servers/x")
    several = read(json.dumps([message("ping"), message(name=name)]).encode())
    assert calls_a_tool(several, "") is calls


@pytest.mark.parametrize("method", ["tools/list", "initialize", "resources/read", "prompts/get", "tasks/get"])
def test_nothing_else_is_a_call(method: str) -> None:
    assert not calls_a_tool(read(json.dumps(message(method, name="execute_mcp_tool")).encode()), "all")


def test_what_is_no_message_calls_nothing() -> None:
    for text in (b"{", b"[]", b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}'):
        assert not calls_a_tool(read(text), "")
