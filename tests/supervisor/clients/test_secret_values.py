"""Secrets of an entry are named, and never shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.clients.documents import mask_entry, secrets_of
from tests.supervisor.config.test_jsonc import json_values

KEY = "sk-canary0123456789abcdef"


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ({"env": {"TOKEN": "canary", "HOME": "${HOME}", "EMPTY": ""}}, ["env.TOKEN"]),
        ({"headers": {"Authorization": "Bearer ${TOKEN}", "X-Key": "canary"}}, ["headers.X-Key"]),
        ({"url": "https://me:canary@h/x?key=canary&b=${B}#f"}, ["url (user)", "url (?key)"]),
        ({"url": "https://${USER}@h/?empty="}, []),
        ({"url": "http://[canary"}, ["url (unreadable)"]),
        ({"args": ["--token", "canary-1", "--port", "3000"]}, ["args[1]"]),
        (
            {"args": [f"--key={KEY}", "postgres://u:canary@h/db", "https://h/?a=canary"]},
            ["args[0]", "args[1]", "args[2]"],
        ),
        ({"command": "x", "args": ["-y", "@scope/package@1.2.3", 4]}, []),
        ({"env": "canary", "args": "canary"}, []),
    ],
)
def test_secrets_are_named(entry: dict[str, Any], names: list[str]) -> None:
    assert secrets_of(entry) == names
    if names:
        assert "canary" not in json.dumps(mask_entry(entry))


def test_an_entry_without_secrets_is_shown_as_it_is() -> None:
    entry = {
        "command": "npx",
        "args": ["-y", "p@1", 4],
        "env": {"A": "${A}"},
        "url": "https://h/mcp",
        "timeout": 3,
        "tools": {"allow": ["a"]},
    }
    assert mask_entry(entry) == entry


def test_references_in_an_address_are_shown() -> None:
    assert mask_entry({"url": "https://${U}:${P}@h/?k=${K}&l=x"})["url"] == "https://${U}:${P}@h/?k=${K}&l=***"


def test_which_door_of_ours_an_address_is_is_no_secret() -> None:
    url = "http://127.0.0.1:3001/mcp?execute=by-effect"
    assert mask_entry({"url": f"{url}&k=canary"})["url"] == f"{url}&k=***"
    assert mask_entry({"url": url, "args": ["--url", url]}) == {"url": url, "args": ["--url", url]}
    assert secrets_of({"url": url}) == []
    profile = "http://h/mcp?profile=my%20own&empty="
    assert mask_entry({"url": f"{profile}&k=canary"})["url"] == f"{profile}&k=***"
    assert secrets_of({"url": "http://h/?profile=sk-canary0123456789abcdef"}) == ["url (?profile)"]
    assert secrets_of({"url": "http://h/?execute=canary"}) == ["url (?execute)"]


def test_a_reference_is_shown_wherever_it_stands_and_its_default_only_if_it_is_no_secret() -> None:
    args = ["--token=${TOKEN}", "Authorization: Bearer ${env:TOKEN}", "postgres://u:${PASSWORD}@h/db", "${PORT:-3000}"]
    entry = {"command": "x", "args": args, "env": {"A": "${LEVEL:-info}"}}
    assert mask_entry(entry) == entry
    assert secrets_of(entry) == []
    entry = {"args": ["--token=${TOKEN:-canary-1}"], "env": {"A": "${PASSWORD:-canary-2}"}}
    assert mask_entry(entry) == {"args": ["--token=${TOKEN:-***}"], "env": {"A": "${PASSWORD:-***}"}}


def test_what_looks_like_a_secret_is_hidden_wherever_it_is() -> None:
    assert KEY not in json.dumps(mask_entry({"command": f"x {KEY}", "_comment": [{"was": KEY}], "env": {"A": [KEY]}}))


@given(st.dictionaries(st.sampled_from(["env", "headers", "args", "url", "command", "x"]), json_values | st.text()))
def test_no_entry_is_too_odd(entry: dict[str, Any]) -> None:
    secrets_of(entry)
    assert mask_entry(entry).keys() == entry.keys()
