"""The example plugins, installed as packages, in a real daemon: who may call what, and what results are without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.daemons import Daemon, client, running, stand_in
from tests.fakes.era_clients import EraClient
from tests.fakes.plugins import install_example

pytestmark = pytest.mark.e2e

IDENTITY: dict[str, Any] = {
    "users": {"ann": {"role": "admin"}, "bob": {}, "cyd": {}},
    "teams": {"support": {"members": ["bob"]}},
}
PLUGINS: dict[str, Any] = {
    "access": {
        "rules": [
            {"users": ["ann"], "tools": ["*"]},
            {"teams": ["support"], "tools": ["desk:e*"]},
            {"tools": ["*"], "effect": "deny"},
        ],
        "reason": "ask the desk",
    },
    "redaction": {},
}
TEXT = "write to ann@example.com or pay with 4111 1111 1111 1111, ref 4111 1111 1111 1112"
REDACTED = "write to [redacted] or pay with [redacted], ref 4111 1111 1111 1112"


async def token_of(daemon: Daemon, user: str, role: str = "member") -> str:
    key = (daemon.directory / "data" / "page.key").read_bytes().hex()
    async with client() as http:
        answer = await http.post(
            f"{daemon.url}/api/access-tokens",
            json={"user": user, "role": role},
            headers={"authorization": f"Bearer {key}"},
        )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


def said(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_rules_and_redaction_hold_for_both_eras_at_every_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    for name in ("access", "redaction"):
        install_example(name, tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    servers = {"desk": stand_in("growing")}
    with running(tmp_path / "d", servers, auth="tokens", identity=IDENTITY, plugins=PLUGINS) as daemon:
        for user, role, allowed in (("ann", "admin", True), ("bob", "member", True), ("cyd", "member", False)):
            headers = {"authorization": f"Bearer {await token_of(daemon, user, role)}"}
            async with httpx2.AsyncClient(base_url=daemon.url, headers=headers, timeout=60) as http:
                for door, name, arguments in (
                    ("/mcp", "execute_mcp_tool", {"tool_path": "desk:echo", "arguments": {"text": TEXT}}),
                    ("/mcp/servers/desk", "echo", {"text": TEXT}),
                    ("/mcp/all", "desk__echo", {"text": TEXT}),
                ):
                    at = EraClient(http, door, era)
                    await at.greet()
                    result = await at.result("tools/call", name=name, arguments=arguments)
                    assert at.wrong == []
                    if allowed:
                        assert (said(result), result.get("isError", False)) == (REDACTED, False)
                    else:
                        assert result["isError"] is True
                        assert "desk:echo was refused by plugin access, nothing was called: ask the desk" in said(
                            result
                        )


def test_each_example_says_of_itself_what_its_module_has(tmp_path: Path) -> None:
    for name in ("access", "redaction", "template"):
        install_example(name, tmp_path)
    assert len([*tmp_path.glob("*.dist-info")]) == len([*tmp_path.glob("*.py")]) == 3


async def test_a_call_of_a_guarded_daemon_is_recorded_and_status_shows_the_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_example("access", tmp_path / "site")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    with running(tmp_path / "d", {"desk": stand_in("growing")}, plugins={"access": {}}) as daemon:
        await daemon.ready()
        answer = await daemon.execute("desk:echo", text="x")
        assert answer["result"]["structuredContent"]["error"]["plugin"] == "access"
        page = await daemon.page("/api/status")
        assert page["plugins"] == [
            {
                "name": "access",
                "version": "mcpvisor-example-access 1.0.0",
                "guards": True,
                "hooks": ["before_call", "hide_tool"],
                "off": [],
                "failures": {},
            }
        ]
        assert "access" not in json.dumps(page["degraded"])
