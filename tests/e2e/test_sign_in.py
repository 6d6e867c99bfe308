"""The official clients sign in at a real authorization server, oidc-provider, to use a daemon that takes its tokens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import PATIENCE_S, client, running

pytestmark = pytest.mark.e2e

SERVERS = {"time": {"command": sys.executable, "args": ["-m", "mcp_server_time"]}}
LIFE_S = 5
KINDS = ("mcp2", "mcp1", "sdk", "default", "auto")
SCOPES = {"mcp:read", "mcp:tools:execute"}


@contextmanager
def authorization_server(form: str, life_s: int) -> Iterator[str]:
    program = environments.node()
    if program is None:  # the one thing that cannot be installed from the registries this project uses
        pytest.skip("not run: the authorization server needs Node.js 20 or later, and there is none")
    script = str(environments.CLIENTS / "authorization_server.cjs")
    command = [program, script, environments.typescript(), form, str(life_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def flow(kind: str, url: str, life_s: int) -> list[str]:
    if kind in ("mcp1", "mcp2"):
        python = environments.python_1() if kind == "mcp1" else environments.python_2()
        return [python, str(environments.CLIENTS / "python_oauth.py"), url, kind, str(life_s)]
    program = environments.node()
    assert program is not None
    return [
        program,
        str(environments.CLIENTS / "typescript_oauth.cjs"),
        environments.typescript(),
        url,
        kind,
        str(life_s),
    ]


async def told(command: list[str]) -> Any:
    with trio.fail_after(PATIENCE_S):
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    return json.loads(done.stdout)


async def counts_of(issuer: str) -> dict[str, int]:
    async with client() as http:
        counted: dict[str, int] = (await http.get(f"{issuer}/counts")).json()
    return counted


def settings(issuer: str, **more: Any) -> dict[str, Any]:
    return {"auth": "oauth", "identity": {"issuers": [{"issuer": issuer, **more}]}}


ASKING = {"introspection": {"client_id": "mcpvisor", "client_secret": "the secret of the daemon"}}


@pytest.mark.parametrize("kind", KINDS)
async def test_sign_in_call_renew_and_be_revoked(tmp_path: Path, kind: str) -> None:
    with (
        authorization_server("opaque", LIFE_S) as issuer,
        running(tmp_path, SERVERS, **settings(issuer, **ASKING)) as at,
    ):
        url = f"{at.url}/mcp"
        report = await told(flow(kind, url, LIFE_S))
        counts = await counts_of(issuer)
    asked = parse_qs(urlsplit(report["asked"]).query)
    assert (asked["resource"], asked["code_challenge_method"]) == ([url], ["S256"])
    assert set(asked["scope"][0].split()) - {"offline_access"} == SCOPES, "what the challenge named"
    assert all("Europe/Berlin" in text for text in report["called"])
    assert report["renewed"]
    assert report["revocation"] == 200
    assert counts["registered"] == 1
    assert counts["refresh_token"] >= 1
    assert counts["revoked"] >= 1
    if kind in ("mcp1", "mcp2"):  # the flow goes on in place
        assert (len(report["called"]), report["redirected"], counts["authorization_code"]) == (3, 2, 2)
    else:  # it wants its user back, and says so
        assert re.search("Unauthorized", report["refused"])
        assert re.search("Unauthorized", report["afterwards"])
        assert (len(report["called"]), counts["authorization_code"]) == (2, 1)
        assert report["redirected"] >= 2, "by the call, and by its stream if it has one"
    assert counts["introspected"] < 20


@pytest.mark.parametrize("kind", KINDS)
async def test_sign_in_and_call_with_signed_tokens(tmp_path: Path, kind: str) -> None:
    with authorization_server("jwt", 600) as issuer, running(tmp_path, SERVERS, **settings(issuer)) as at:
        report = await told(flow(kind, f"{at.url}/mcp", 0))
        counts = await counts_of(issuer)
    assert "Europe/Berlin" in report["called"][0]
    assert (report["redirected"], counts["authorization_code"], counts["introspected"]) == (1, 1, 0)
