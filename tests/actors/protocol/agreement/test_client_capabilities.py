"""What a client can be asked by what it declares, and what servers are told of that."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from actors.protocol.agreement.capabilities import (
    ELICIT,
    LIST_ROOTS,
    MAX_BYTES,
    OF_CLIENTS,
    SAMPLE,
    forwardable,
    missing_capability,
)

URL_MODE = {"mode": "url", "url": "https://example.com"}


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("capabilities", "method", "params", "lacks"),
    [
        ({"elicitation": {}}, ELICIT, {}, ""),
        ({"elicitation": {"form": {}}}, ELICIT, {"mode": "form"}, ""),
        ({"elicitation": {"url": {}}}, ELICIT, {}, "elicitation.form"),
        ({"elicitation": {"url": {}}}, ELICIT, URL_MODE, ""),
        ({"elicitation": {}}, ELICIT, URL_MODE, "elicitation.url"),
        ({"elicitation": None}, ELICIT, {}, "elicitation"),
        ({}, ELICIT, {}, "elicitation"),
        ({"sampling": {}}, SAMPLE, {"messages": []}, ""),
        ({"sampling": {}}, SAMPLE, {"tools": []}, "sampling.tools"),
        ({"sampling": {}}, SAMPLE, {"toolChoice": {"mode": "auto"}}, "sampling.tools"),
        ({"sampling": {"tools": {}}}, SAMPLE, {"tools": []}, ""),
        ({"sampling": {}}, SAMPLE, [1], ""),
        ({}, SAMPLE, {}, "sampling"),
        ({"roots": {"listChanged": True}}, LIST_ROOTS, {}, ""),
        ({"elicitation": {}}, LIST_ROOTS, {}, "roots"),
        ({"elicitation": {}}, "tools/list", {}, "tools/list"),
        ([], LIST_ROOTS, {}, "roots"),
    ],
)
def test_a_client_is_asked_only_what_it_declares(capabilities: Any, method: str, params: Any, lacks: str) -> None:
    assert missing_capability(raw(capabilities), method, raw(params)) == lacks


@pytest.mark.parametrize(
    ("capabilities", "told"),
    [
        ({}, {}),
        ({"elicitation": {"form": {}, "x": 1}, "sampling": None}, {"elicitation": {"form": {}, "x": 1}}),
        ({"roots": {"listChanged": True}, "tasks": {"list": {}}}, {"roots": {}}),
        ({"extensions": {"a/b": {"x": [1]}}}, {"extensions": {"a/b": {"x": [1]}}}),
        ({"extensions": {"a/b": {}, "io.modelcontextprotocol/tasks": {}}}, {"extensions": {"a/b": {}}}),
        ({"experimental": {"x": "y" * MAX_BYTES}}, {}),
        ([1, 2, 3], {}),
    ],
)
def test_a_modern_server_is_told_what_gets_through(capabilities: Any, told: Any) -> None:
    assert json.loads(forwardable(raw(capabilities))) == told


def test_what_is_declared_for_all_clients_covers_whatever_one_of_them_can_be_asked() -> None:
    for method, params in ((ELICIT, {}), (ELICIT, URL_MODE), (SAMPLE, {"tools": []}), (LIST_ROOTS, {})):
        assert missing_capability(msgspec.Raw(OF_CLIENTS), method, raw(params)) == ""
