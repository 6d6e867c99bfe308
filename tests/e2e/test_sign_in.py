"""The official clients sign in at a real authorization server, oidc-provider, to use a daemon that takes its tokens."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
import trio

from tests.e2e import environments
from tests.e2e.daemons import client, running
from tests.scenario.client import PATIENCE_S

pytestmark = pytest.mark.e2e

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
        return [*python, str(environments.CLIENTS / "python_oauth.py"), url, kind, str(life_s)]
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


class Setting(NamedTuple):
    """A daemon, and the authorization server whose tokens it takes."""

    daemon: str
    issuer: str

    async def counts(self) -> Counter[str]:
        """What the authorization server has counted so far."""
        async with client() as http:
            return Counter((await http.get(f"{self.issuer}/counts")).json())


@contextmanager
def setting(directory: Path, form: str, life_s: int, **more: Any) -> Iterator[Setting]:
    servers = {"time": environments.time_server()}
    with authorization_server(form, life_s) as issuer:
        identity = {"issuers": [{"issuer": issuer, **more}]}
        with running(directory, servers, auth="oauth", identity=identity) as daemon:
            yield Setting(daemon.url, issuer)


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    """With tokens that the daemon has to ask about, and that soon expire."""
    with setting(tmp_path_factory.mktemp("asking"), "opaque", LIFE_S, **ASKING) as at:
        yield at


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    """With signed tokens."""
    with setting(tmp_path_factory.mktemp("signed"), "jwt", 600) as at:
        yield at


ASKING = {"introspection": {"client_id": "mcpvisor", "client_secret": "the secret of the daemon"}}


@pytest.mark.parametrize("kind", KINDS)
async def test_sign_in_call_renew_and_be_revoked(asking: Setting, kind: str) -> None:
    before = await asking.counts()
    url = f"{asking.daemon}/mcp"
    report = await told(flow(kind, url, LIFE_S))
    counts = await asking.counts() - before
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
async def test_sign_in_and_call_with_signed_tokens(signed: Setting, kind: str) -> None:
    before = await signed.counts()
    report = await told(flow(kind, f"{signed.daemon}/mcp", 0))
    counts = await signed.counts() - before
    assert "Europe/Berlin" in report["called"][0]
    assert (report["redirected"], counts["authorization_code"], counts["introspected"]) == (1, 1, 0)
