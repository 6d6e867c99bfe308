"""`MCP_TOOL_TIMEOUT` is a default: what the file says goes over it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from supervisor.config import Configuration, parse
from supervisor.servers.deployment import deploy

FILE = Path("/etc/mcp/mcp.json")


def read(
    timeout: str | None, *, supervisor: dict[str, Any] | None = None, entry: dict[str, Any] | None = None
) -> Configuration:
    document: dict[str, Any] = {"mcpServers": {"s": {"command": "c", **(entry or {})}}}
    if supervisor is not None:
        document["supervisor"] = supervisor
    return parse(json.dumps(document), FILE, {} if timeout is None else {"MCP_TOOL_TIMEOUT": timeout})


def call_s(configuration: Configuration) -> float:
    return deploy(configuration, key=b"k" * 16).rules_of("s").timeout_s


def listing_s(configuration: Configuration) -> float:
    return deploy(configuration, key=b"k" * 16).servers["s"].settings.discovery_timeout_s


@pytest.mark.parametrize(
    ("timeout", "seconds", "noted"),
    [
        (None, 60.0, ""),
        ("", 60.0, ""),
        ("120000", 120.0, ""),
        (" 7500.5 ", 7.5005, ""),
        ("5000", 5.0, ""),
        ("4999", 5.0, "counts as 5 s"),
        ("30", 5.0, "counts as 5 s"),
        ("0", 60.0, "no number of milliseconds"),
        ("-1", 60.0, "no number of milliseconds"),
        ("1e9", 60.0, "no number of milliseconds"),
        ("a minute", 60.0, "no number of milliseconds"),
        ("9" * 400, 60.0, "no number of milliseconds"),
    ],
)
def test_the_variable_is_the_deadline_of_calls_and_listings(timeout: str | None, seconds: float, noted: str) -> None:
    configuration = read(timeout)
    assert call_s(configuration) == listing_s(configuration) == seconds
    notes = [str(note) for note in configuration.notes if "MCP_TOOL_TIMEOUT" in str(note)]
    assert len(notes) == bool(noted)
    assert all(noted in note for note in notes)


@pytest.mark.parametrize(
    ("supervisor", "entry", "seconds"),
    [
        ({}, {}, (90.0, 90.0)),
        ({"call_timeout_s": 7}, {}, (7.0, 90.0)),
        ({"call_timeout_s": 7}, {"call_timeout_s": 8}, (8.0, 90.0)),
        ({}, {"timeout": 9}, (9.0, 90.0)),
        ({}, {"call_timeout_s": 3}, (3.0, 90.0)),
        ({}, {"discovery_timeout_s": 30}, (90.0, 30.0)),
    ],
)
def test_what_the_file_says_goes_over_it(
    supervisor: dict[str, Any], entry: dict[str, Any], seconds: tuple[float, float]
) -> None:
    configuration = read("90000", supervisor=supervisor, entry=entry)
    assert (call_s(configuration), listing_s(configuration)) == seconds


def test_a_fault_of_the_file_is_told_as_without_it() -> None:
    document = json.dumps({"mcpServers": {"s": ["command"], "t": {"command": "c", "discovery_timeout_s": 1}}})
    with_it = parse(document, FILE, {"MCP_TOOL_TIMEOUT": "90000"})
    assert [str(problem) for problem in with_it.problems] == [
        str(problem) for problem in parse(document, FILE, {}).problems
    ]
