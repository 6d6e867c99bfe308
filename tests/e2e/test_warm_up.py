"""A daemon that starts the server of a search ahead, and counts whether that was right."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.daemons import running, stand_in, text

pytestmark = pytest.mark.e2e


async def test_the_server_of_a_search_is_started_ahead_and_the_next_call_finds_it_awake(tmp_path: Path) -> None:
    with running(tmp_path, {"growing": stand_in("growing", idle_timeout_s=0.2)}, warm_up=1) as daemon:
        async with daemon.events() as events:
            await daemon.ready()
            await events.state("growing", "dormant")
            assert (await daemon.rows())["growing"]["pid"] is None
            assert "growing:echo" in await daemon.discover("growing:echo")
            await events.state("growing", "ready")
        assert text(await daemon.execute("growing:echo", text="at once")) == "at once"
        counted = (await daemon.page("/api/usage"))["warm_ups"]
        assert counted.pop("saved_s") > 0
        assert counted == {"right": 1, "wrong": 0, "unused": 0, "failed": 0}


async def test_unless_it_is_set_a_search_starts_nothing(tmp_path: Path) -> None:
    with running(tmp_path, {"growing": stand_in("growing", idle_timeout_s=0.2)}) as daemon:
        async with daemon.events() as events:
            await daemon.ready()
            await events.state("growing", "dormant")
            assert "growing:echo" in await daemon.discover("growing:echo")
            row = (await daemon.rows())["growing"]
            assert (row["state"], row["incarnation"]) == ("dormant", 1)
