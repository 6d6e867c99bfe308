"""The receiver of the guide takes what the daemon signs, and nothing else."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from benchmarks.machine import free_port
from supervisor.config.sections import EventSink
from supervisor.delivery.delivery import Courier
from supervisor.delivery.http_sink import HttpSink
from supervisor.events.event import DaemonEvent
from supervisor.events.kinds import ToolExecuted

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "events.md"
SECRETS = tuple(f"whsec_{base64.b64encode(text * 32).decode()}" for text in (b"a", b"b"))


def receiver() -> str:
    (text,) = re.findall(r"<!-- receiver -->\n```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    return str(text)


async def send(port: int, secret: str, clock: float) -> Courier:
    """Send an event until it is taken, or refused twice by somebody who is there."""
    config = EventSink(name="a", url=f"http://127.0.0.1:{port}/", secret=secret, interval_s=0.05)
    courier = Courier(config, HttpSink(config, lambda: clock), lambda number: f"7-{number}", lambda: clock)
    data = ToolExecuted(server_slug="clock", tool_name="tell", success=True, outcome="ok", response_time_ms=1.0)
    courier.take(DaemonEvent(number=1, time=clock, data=data))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(courier.run)
        with trio.fail_after(30):
            while courier.queue and "HTTP" not in courier.status().last_error:  # noqa: ASYNC110 - another process
                await trio.sleep(0.02)
        courier.scope.cancel()
    return courier


@pytest.mark.process
async def test_the_receiver_prints_what_is_signed(tmp_path: Path) -> None:
    script, port = tmp_path / "receiver.py", free_port()
    script.write_text(receiver())
    process = await trio.lowlevel.open_process(
        [sys.executable, str(script), str(port)],
        env={**os.environ, "MCPVISOR_SECRET": SECRETS[0]},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        for secret, moment, sent in ((SECRETS[1], 0, 0), (SECRETS[0], -600, 0), (SECRETS[0], 0, 1)):
            courier = await send(port, secret, time.time() + moment)
            assert courier.status().sent == sent
            assert sent or courier.status().last_error == "it answers HTTP 401"
        assert process.stdout is not None
        with trio.fail_after(30):
            line = (await process.stdout.receive_some()).decode()
        assert line.split()[1:] == ["mcp.tool.executed", "clock"]
    finally:
        process.kill()
        with trio.move_on_after(5, shield=True):
            await process.wait()
