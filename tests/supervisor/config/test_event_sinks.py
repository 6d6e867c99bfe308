"""A list of sinks is read whole, or says what is wrong where; none of its secrets is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actors.errors import ConfigError
from supervisor.config import Settings
from supervisor.config.expansion import DEFAULT
from supervisor.config.load import parse
from supervisor.config.provenance import EffectiveValue, explain_daemon
from supervisor.config.values import SeveralErrors

SECRET = "s" * 40
ENVIRONMENT = {"HOME": "/home/me", "SECRET": SECRET}
GOOD = {"name": "a", "url": "https://example.com/x", "secret": "${SECRET}", "headers": {"x-key": "${SECRET}"}}


def read(*sinks: Any) -> Settings:
    text = json.dumps({"mcpServers": {}, "supervisor": {"event_sinks": sinks}})
    return parse(text, Path("/etc/mcpvisor/mcp.json"), ENVIRONMENT).settings


def faults(*sinks: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        read(*sinks)
    error = refused.value
    return "\n".join(
        f"{each.key}: {each.message}" for each in (error.errors if isinstance(error, SeveralErrors) else [error])
    )


def test_variables_and_paths_are_filled_in() -> None:
    http, file, home, store = read(
        GOOD,
        {"name": "b", "type": "file", "path": "events.jsonl", "_comment": "x"},
        {"name": "c", "type": "file", "path": "~/events.jsonl"},
        {"name": "d", "type": "store", "days": 7},
    ).event_sinks
    assert (http.secret, http.headers) == (SECRET, {"x-key": SECRET})
    assert (file.path, home.path, store.days) == ("/etc/mcpvisor/events.jsonl", "/home/me/events.jsonl", 7)
    assert (http.interval_s, http.batch_events, http.queue_events) == (3.0, 100, 10_000)
    assert http.wants("mcp.tool.executed")
    assert SECRET not in repr(http)


def test_what_holds_is_explained_without_secrets() -> None:
    text = json.dumps({"mcpServers": {}, "supervisor": {"event_sinks": [GOOD]}})
    configuration = parse(text, Path("/etc/mcp.json"), ENVIRONMENT)
    place = EffectiveValue(key="data_dir", value="/x", origin=DEFAULT)
    shown = {each.key: each.value for each in explain_daemon(configuration, place, ENVIRONMENT)}
    assert shown["event_sinks"] == ["a (http)"]
    assert SECRET not in repr(shown)


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ({"url": "https://e.x/"}, "event_sinks[0]: has no name"),
        ({**GOOD, "name": "a b:c"}, "[0].name: the name holds"),
        ({**GOOD, "url": "nowhere"}, "[0].url: is not an address"),
        ({**GOOD, "url": "https://me:secret@e.x/"}, "[0].url: is not an address"),
        ({**GOOD, "url": "http://example.com/"}, "[0].url: is not encrypted"),
        ({**GOOD, "secret": "short"}, "[0].secret: is shorter than 24 bytes"),
        ({**GOOD, "secret": "whsec_???"}, "[0].secret: is no base64"),
        ({**GOOD, "secret": "${NOWHERE}"}, "[0].secret: the environment variable NOWHERE is not set"),
        ({**GOOD, "headers": {"x": "${NOWHERE}"}}, "headers.x: the environment variable NOWHERE"),
        ({**GOOD, "headers": {"Webhook-Id": "1"}}, "[0].headers.Webhook-Id: is set by the daemon"),
        ({**GOOD, "headers": {"x y": "1"}}, "not a name of an HTTP header"),
        ({**GOOD, "events": ["mcp.sever.*"]}, "[0].events[0]: fits no kind of event"),
        ({**GOOD, "queue_events": 150}, "[0].queue_events: is less than two batches"),
        ({**GOOD, "colour": 1}, "[0].colour: unknown key"),
        ({**GOOD, "timeout_s": "x"}, "[0].timeout_s: must be"),
        ({**GOOD, "days": 3}, '[0].days: is for the type "store"'),
        ({"name": "a"}, 'event_sinks[0]: has the type "http" and no "url"'),
        ({"name": "a", "type": "file"}, 'event_sinks[0]: has the type "file" and no "path"'),
        ({"name": "a", "type": "pigeon"}, "[0].type: must be one of"),
        (3, "event_sinks[0]: must be an object"),
    ],
)
def test_a_fault_says_where_it_is(sink: Any, words: str) -> None:
    said = faults(sink)
    assert words in said
    assert SECRET not in said


def test_two_sinks_have_two_names_and_there_are_eight_at_most() -> None:
    assert "[1].name: is the name of another sink" in faults(GOOD, GOOD)
    assert "a list of at most 8 objects" in faults(*[{**GOOD, "name": f"n{number}"} for number in range(9)])


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/", "http://localhost/", "https://e.x/?a=b"])
def test_an_address_that_nobody_reads_along_is_taken(url: str) -> None:
    assert read({**GOOD, "url": url}).event_sinks[0].url == url


def test_an_address_without_encryption_may_be_wanted() -> None:
    assert read({**GOOD, "url": "http://example.com/", "insecure_http": True}).event_sinks[0].insecure_http
