"""The receiver of the page about events of servers takes what the daemon posts, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from actors.principal import Principal
from benchmarks.machine import free_port
from supervisor.events.event import key_of
from supervisor.service.events.callbacks import Callbacks, Receiver
from supervisor.service.events.limits import CallbackUnusable, Undelivered
from tests.fakes.certificates import certificate
from tests.fakes.webhook_receiver import new_secret

PAGE = Path(__file__).parents[2] / "docs" / "developers" / "server-events.md"


async def begun(posting: Callbacks, receiver: Receiver) -> None:
    """Verify the address, once somebody listens there."""
    while True:
        try:
            return await posting.verify(receiver)
        except CallbackUnusable as unusable:
            if unusable.details != {"reason": "connection_refused"}:
                raise
        await trio.sleep(0.2)


@pytest.mark.process
async def test_the_receiver_confirms_and_prints_what_is_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = re.findall(r"<!-- receiver -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    script, port, secret = tmp_path / "receiver.py", free_port(), new_secret()
    script.write_text(text)
    pem, _ = certificate(tmp_path, names=("localhost",))
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    monkeypatch.setattr("supervisor.service.events.callbacks.VERIFICATIONS_OF_PRINCIPAL", 1000)
    monkeypatch.setattr("supervisor.service.events.callbacks.VERIFICATIONS_OF_HOST", 1000)
    process = await trio.lowlevel.open_process(
        [sys.executable, str(script), str(port), str(pem), str(tmp_path / "key.pem")],
        env={**os.environ, "SECRET": secret},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    url = f"https://localhost:{port}/"
    posting = Callbacks(lambda: (url,), time.time)
    ours, other = (Receiver(Principal("user:ada"), url, "sub_1", (key_of(each),)) for each in (secret, new_secret()))
    try:
        with trio.fail_after(60):
            await begun(posting, ours)
            with pytest.raises(CallbackUnusable):
                await posting.verify(other)
            with pytest.raises(Undelivered):
                await posting.deliver(other, "forged", b'{"eventId":"forged","cursor":"1"}')
            await posting.deliver(ours, "a", b'{"cursor":"2","eventId":"a"}')
            await posting.deliver(ours, "msg_gap_1", b'{"type":"gap","cursor":"3"}')
            said = b""
            assert process.stdout is not None
            while said.count(b"\n") < 2:
                said += await process.stdout.receive_some()
        assert said == b"a 2\ngap 3\n"
    finally:
        process.kill()
        with trio.move_on_after(10, shield=True):
            await process.wait()
