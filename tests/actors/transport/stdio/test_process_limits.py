"""What one server may take of the machine: open files by the kernel, and an end with a reason for who took too much."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import trio

from actors.transport.stdio.command import Launch, ProcessLimits
from actors.transport.stdio.containment import OUT_OF_MEMORY, ShimContainment
from actors.transport.stdio.process import ProcessTransport
from actors.transport.stdio.resources.allotment import Allotment
from actors.transport.stdio.resources.groups import Groups
from actors.transport.stdio.resources.room import Room
from tests.actors.transport.stdio.children import HASTY, PATIENCE_S, launch

pytestmark = pytest.mark.process


async def shown(transport: ProcessTransport) -> str:
    with trio.fail_after(PATIENCE_S):
        async with transport.connect() as connection:
            return (await connection.wait()).last_stderr


def own_score() -> int:
    return int(Path("/proc/self/oom_score_adj").read_text())


def shell(command: str) -> Launch:
    return Launch(command="/bin/sh", args=("-c", f"({command}) >&2"))


@pytest.mark.parametrize(("inherited", "most", "wanted"), [(0, 99, "99 99"), (50, 99, "50 99"), (200, 99, "99 99")])
async def test_a_limit_of_open_files_cannot_be_raised_again(inherited: int, most: int, wanted: str) -> None:
    transport = ProcessTransport(
        shell("echo $(ulimit -Sn) $(ulimit -Hn)"),
        ProcessLimits(max_open_files=most),
        containment=ShimContainment(descriptors=inherited),
    )
    assert await shown(transport) == wanted


async def test_without_a_limit_only_the_soft_one_is_that_of_before() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    transport = ProcessTransport(shell("echo $(ulimit -Sn) $(ulimit -Hn)"), containment=ShimContainment(descriptors=64))
    assert await shown(transport) == f"64 {hard}"


async def test_the_kernel_takes_a_server_before_the_daemon_and_its_shim() -> None:
    own = own_score()
    show = "cat /proc/self/oom_score_adj /proc/$(cut -d' ' -f4 /proc/$$/stat)/oom_score_adj"
    assert (await shown(ProcessTransport(Launch(command="/bin/sh", args=("-c", f"{show} >&2"))))).split() == [
        str(max(own, 500)),
        str(own),
    ]


async def test_who_took_too_much_ends_with_that_reason_and_not_because_it_was_asked() -> None:
    room = Room()
    transport = ProcessTransport(launch("echo"), HASTY, containment=ShimContainment(room=room), name="greedy")
    with trio.fail_after(PATIENCE_S):
        async with transport.connect() as connection:
            assert connection.pid is not None
            running = room.running[connection.pid]
            assert running.allotment.name == "greedy"
            running.end("it had 9 processes, its limit is 5")
            exit_ = await connection.wait()
            running.end("too late")
    assert (exit_.reason, exit_.asked) == ("it had 9 processes, its limit is 5", False)
    assert room.running == {}


class OneGroup(Groups):
    """Gives every server the same directory as its group, and counts how often it takes it back."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, place)
        self.place = place
        self.removed = 0

    def make(self, allotment: Allotment) -> Path | None:
        (self.place / "cgroup.procs").touch()
        return self.place

    def remove(self, group: Path) -> None:
        self.removed += 1


async def test_a_server_enters_its_group_before_it_runs_and_is_told_of_its_end_there(tmp_path: Path) -> None:
    groups = OneGroup(tmp_path)
    containment = ShimContainment(room=Room(groups=groups))
    show = shell(f"cat {tmp_path}/cgroup.procs; echo oom_kill 1 > {tmp_path}/memory.events 2>/dev/null; exec 2>&1")
    transport = ProcessTransport(show, ProcessLimits(max_memory_mib=9), containment=containment)
    with trio.fail_after(PATIENCE_S):
        async with transport.connect() as connection:
            exit_ = await connection.wait()
    assert exit_.last_stderr == "0", "which means: the process that writes it"
    assert exit_.reason == OUT_OF_MEMORY
    assert groups.removed == 1


async def test_without_a_limit_that_needs_one_a_server_has_no_group(tmp_path: Path) -> None:
    groups = OneGroup(tmp_path)
    limits, containment = ProcessLimits(max_open_files=99), ShimContainment(room=Room(groups=groups))
    await shown(ProcessTransport(shell("true"), limits, containment=containment))
    assert groups.removed == 0
