"""Heads that repeat arguments: what agrees, and what is refused before anybody acts on it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.wire.mirrors import Mirror
from supervisor.front.edge.fields import fields_of
from supervisor.front.http.heads import disagreement
from supervisor.front.messages import ModernRequest

MIRRORS = (Mirror("mcp-param-region", ("region",)), Mirror("mcp-param-size", ("disk", "size")))


def refused(arguments: Any, *headers: tuple[str, str]) -> str:
    params = msgspec.Raw(json.dumps({"name": "t", "arguments": arguments}).encode())
    message = ModernRequest(
        id=b"7", key=7, method="tools/call", params=params, version="2026-07-28", capabilities=msgspec.Raw(b"{}")
    )
    given = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    wrong = disagreement(MIRRORS, message, fields_of([(b"content-type", b"application/json"), *given]))
    if wrong is None:
        return ""
    assert (wrong.id, wrong.code) == (b"7", -32020)
    return wrong.message


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, []),
        ({"region": None, "disk": {}}, []),
        ({"region": "eu"}, [("mcp-param-region", "eu")]),
        ({"region": "Köln"}, [("mcp-param-region", "=?base64?S8O2bG4=?=")]),
        ({"region": "SGVsbG8="}, [("mcp-param-region", "SGVsbG8=")]),
        ({"disk": {"size": 42}}, [("mcp-param-size", "42")]),
        ({"disk": {"size": 42.0}}, [("mcp-param-size", "42")]),
        ({"disk": {"size": 42}}, [("mcp-param-size", "42.0")]),
        ({"region": True}, [("mcp-param-region", "true")]),
        ({}, [("mcp-param-other", "x"), ("mcp-param-other", "y")]),
    ],
)
def test_what_agrees_is_served(arguments: Any, headers: list[tuple[str, str]]) -> None:
    assert refused(arguments, *headers) == ""


@pytest.mark.parametrize(
    ("arguments", "headers", "said"),
    [
        ({"region": "eu"}, [], "the header mcp-param-region is missing, which repeats the argument 'region'"),
        ({"disk": {"size": 1}}, [], "the header mcp-param-size is missing, which repeats the argument 'disk.size'"),
        ({}, [("mcp-param-region", "eu")], "the header mcp-param-region is there without the argument"),
        ({"region": None}, [("mcp-param-region", "")], "the header mcp-param-region is there without the argument"),
        ({"region": "eu"}, [("mcp-param-region", "EU")], "the header mcp-param-region does not equal"),
        ({"region": "1"}, [("mcp-param-region", "1.5")], "does not equal"),
        ({"region": "42"}, [("mcp-param-region", "42.0")], "does not equal"),
        ({"disk": {"size": 42}}, [("mcp-param-size", "4.2e1")], "does not equal"),
        ({"region": "eu"}, [("mcp-param-region", "eu"), ("mcp-param-region", "eu")], "may be there only once"),
        ({"region": "Hello"}, [("mcp-param-region", "=?base64?SGVsbG8?=")], "does not equal"),
        ({"region": "Hello"}, [("mcp-param-region", "=?base64?SGVs!!!bG8=?=")], "does not equal"),
    ],
)
def test_what_disagrees_is_refused_with_the_header(arguments: Any, headers: list[tuple[str, str]], said: str) -> None:
    assert said in refused(arguments, *headers)
