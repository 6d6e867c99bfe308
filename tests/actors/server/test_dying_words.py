"""Servers that say why they cannot start, each in its own way, as processes: the status says it, too."""

from __future__ import annotations

import sys

import pytest
import trio

from actors.errors import ServerGaveUp
from actors.life.policy import RestartPolicy
from actors.transport.stdio.command import Launch
from actors.transport.stdio.process import ProcessTransport
from tests.actors.server.rig import running_server

pytestmark = pytest.mark.process

INVALID = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32602, "message": "Invalid vault path"}}'


async def last_error(code: str) -> str:
    """Return what the status says of a server that is this program."""
    launch = Launch(command=sys.executable, args=("-I", "-S", "-c", code))
    with trio.fail_after(60):
        async with running_server(
            transport=ProcessTransport(launch), policy=RestartPolicy(max_restarts=0, backoff_initial_s=0.01)
        ) as rig:
            with pytest.raises(ServerGaveUp):
                await rig.wake()
            return (await rig.status()).last_error or ""


@pytest.mark.parametrize("end", ["", "\\n"])
async def test_a_server_that_says_on_stdout_which_key_is_missing_is_quoted(end: str) -> None:
    error = await last_error(f"import sys; sys.stdout.write('Please set API_KEY{end}'); sys.exit(2)")
    assert error == "exit code 2; last words: Please set API_KEY"


async def test_a_server_that_says_what_is_wrong_and_hangs_is_quoted() -> None:
    code = "import os, time; os.write(1, b'Please set API_KEY\\n'); os.close(0); os.close(1); time.sleep(1000)"
    error = await last_error(code)
    assert error.endswith("and did not exit; last words: Please set API_KEY")


@pytest.mark.parametrize("end", ["", "\\n"])
async def test_a_server_whose_last_words_are_a_json_rpc_error_is_quoted(end: str) -> None:
    code = f"import sys; sys.stdin.readline(); sys.stdout.write({INVALID!r} + '{end}'); sys.exit(1)"
    assert await last_error(code) == "the server refused the handshake: Invalid vault path"
