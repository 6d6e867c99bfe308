"""How much memory there is: that of the machine, or of the least control group that we are in."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.transport.stdio.resources.allotment import MemoryLook
from actors.transport.stdio.resources.groups import look_at_memory, own_group

MIB = 1 << 20
MEMINFO = "MemTotal:       1024000 kB\nMemFree:  1 kB\nMemAvailable:     512000 kB\nHugePages_Total:       0\n"


class World:
    """A /proc and a mount of control groups of our own."""

    def __init__(self, root: Path) -> None:
        self.proc, self.mount = root / "proc", root / "cgroup"
        self.write("proc/meminfo", MEMINFO)

    def write(self, place: str, text: str) -> None:
        path = self.proc.parent / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def group(self, place: str, limit: str, current: int = 0, inactive: int = 0) -> None:
        self.write(f"cgroup/{place}/memory.max", f"{limit}\n")
        self.write(f"cgroup/{place}/memory.current", f"{current}\n")
        self.write(f"cgroup/{place}/memory.stat", f"anon 7\ninactive_file {inactive}\n")

    def enter(self, place: str) -> None:
        self.write("proc/self/cgroup", f"1:name=systemd:/\n0::/{place}\n")
        self.write("cgroup/cgroup.controllers", "cpu memory pids\n")

    def look(self) -> MemoryLook:
        return look_at_memory(self.proc, self.mount)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_without_control_groups_it_is_the_memory_of_the_machine(world: World) -> None:
    assert world.look() == MemoryLook(total=1024000 * 1024, available=512000 * 1024)
    world.write("proc/self/cgroup", "5:memory:/a\n1:name=systemd:/\n")  # version 1
    assert world.look().total == 1024000 * 1024


def test_the_least_group_counts_and_files_that_can_be_dropped_are_free(world: World) -> None:
    world.enter("outer/inner")
    world.group("outer", str(300 * MIB), current=250 * MIB, inactive=100 * MIB)
    world.group("outer/inner", "max", current=9 * MIB)
    assert world.look() == MemoryLook(total=300 * MIB, available=150 * MIB)
    world.group("outer/inner", str(200 * MIB), current=300 * MIB)
    assert world.look() == MemoryLook(total=200 * MIB, available=0)


def test_what_waits_for_memory_is_read_where_the_kernel_tells(world: World) -> None:
    world.write("proc/pressure/memory", "some avg10=12.50 avg60=1.00 avg300=0.10 total=5\nfull avg10=99.00 avg60=0\n")
    assert world.look().pressure == 12.5


def test_a_group_beside_the_mount_is_none_of_ours(world: World) -> None:
    world.enter("../proc")
    assert own_group(world.proc, world.mount) is None
    world.enter("a/b")
    assert own_group(world.proc, world.mount) == world.mount / "a/b"


def test_without_any_of_it_nothing_is_known(tmp_path: Path) -> None:
    assert look_at_memory(tmp_path / "no", tmp_path / "no") == MemoryLook()


def test_this_machine_tells() -> None:
    memory = look_at_memory()
    if memory.total is not None:
        assert memory.available is not None
        assert 0 <= memory.available <= memory.total
