"""What systemd is told, through a real socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from supervisor.host.program import MAX_STATUS_CHARS, Systemd

Socket = tuple[str, socket.socket]


@pytest.fixture(params=["path", "abstract"])
def notified(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Socket]:
    """What systemd listens on, and how it names that."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@{tmp_path}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(name.replace("@", "\0", 1) if name.startswith("@") else name)
        listener.setblocking(False)
        yield name, listener


def told(listener: socket.socket) -> list[dict[str, str]]:
    """The messages that have come, each as its assignments."""
    messages = list[dict[str, str]]()
    while True:
        try:
            lines = listener.recv(65536).decode().split("\n")
        except BlockingIOError:
            return messages
        messages.append(dict(line.split("=", 1) for line in lines))


@pytest.mark.case("D24")
def test_it_is_told_of_the_start_a_reload_and_the_end(notified: Socket) -> None:
    name, listener = notified
    systemd = Systemd({"NOTIFY_SOCKET": name})
    systemd.ready("runs\nas configured")
    systemd.begin_reload()
    systemd.ready("x" * 1000)
    systemd.begin_stop()
    started, reloading, reloaded, stopping = told(listener)
    assert started == {"READY": "1", "STATUS": "runs as configured"}
    assert reloading["RELOADING"] == "1"
    assert int(reloading["MONOTONIC_USEC"]) > 0
    assert reloaded == {"READY": "1", "STATUS": "x" * MAX_STATUS_CHARS}
    assert stopping["STOPPING"] == "1"


@pytest.mark.case("D19")
@pytest.mark.parametrize(
    ("more", "signs"),
    [
        ({"WATCHDOG_USEC": "20000000"}, 4),
        ({"WATCHDOG_USEC": "20000000", "WATCHDOG_PID": str(os.getpid())}, 4),
        ({"WATCHDOG_USEC": "20000000", "WATCHDOG_PID": "1"}, 0),
        ({"WATCHDOG_USEC": "0"}, 0),
        ({"WATCHDOG_USEC": "soon"}, 0),
        ({"WATCHDOG_USEC": "9" * 5000}, 0),
        ({}, 0),
    ],
)
async def test_signs_of_life_are_given_twice_as_often_as_asked_where_they_are_ours(
    autojump_clock: MockClock, notified: Socket, more: Mapping[str, str], signs: int
) -> None:
    name, listener = notified
    with trio.move_on_after(35):
        await Systemd({"NOTIFY_SOCKET": name, **more}).give_signs_of_life(trio.current_time)
    assert told(listener) == signs * [{"WATCHDOG": "1"}]


async def test_after_a_standstill_the_sign_of_life_that_was_due_is_given_at_once(
    autojump_clock: MockClock, notified: Socket
) -> None:
    """The loop's clock does not count a standstill; systemd does, and would end us."""
    name, listener = notified
    stood_s = 0.0
    systemd = Systemd({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000"})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(systemd.give_signs_of_life, lambda: trio.current_time() + stood_s)
        await trio.sleep(10.5)
        assert len(told(listener)) == 1
        stood_s = 10.0
        await trio.sleep(1.0)
        assert len(told(listener)) == 1
        await trio.sleep(13.0)
        assert told(listener) == []
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", ["", "/nowhere/notify", "@nobody", "x" * 1000, "vsock:2:1234"])
def test_without_anybody_who_listens_nothing_happens(name: str) -> None:
    systemd = Systemd({"NOTIFY_SOCKET": name} if name else {})
    systemd.ready("runs")
    systemd.begin_reload()
    systemd.begin_stop()


def test_what_it_does_not_take_at_once_is_dropped(notified: Socket) -> None:
    name, listener = notified
    systemd = Systemd({"NOTIFY_SOCKET": name})
    for _ in range(2000):
        systemd.ready("runs")
    assert 0 < len(told(listener)) < 2000
