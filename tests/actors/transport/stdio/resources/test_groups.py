"""Control groups of servers, in a directory that looks like a delegated one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from actors.transport.stdio.command import ProcessLimits
from actors.transport.stdio.resources.allotment import Allotment
from actors.transport.stdio.resources.groups import Groups, is_delegated, settings_of, was_out_of_memory

LIMITS = ProcessLimits(max_memory_mib=2, max_processes=7, max_processors=0.5).allotment("a")


class Kernel:
    """A /proc and a mount of control groups; `delegated` are the groups that systemd gave away."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc, self.mount = root / "proc", root / "cgroup"
        self.own = self.mount / "user.slice/mcpvisor.service"
        self.delegated = {self.own}
        self.moved: list[str] = []
        (self.proc / "self").mkdir(parents=True)
        self.own.mkdir(parents=True)
        (self.mount / "cgroup.controllers").write_text("cpu memory pids")
        (self.own / "cgroup.controllers").write_text("cpu io memory pids\n")
        (self.own / "cgroup.procs").write_text("")
        self.enter(self.own)
        # Control groups can be removed with their files, and whatever is written to one file leaves the other.
        monkeypatch.setattr(Path, "rmdir", shutil.rmtree)

    def enter(self, place: Path) -> None:
        (self.proc / "self/cgroup").write_text(f"0::/{place.relative_to(self.mount)}\n")

    def groups(self) -> Groups:
        return Groups(self.proc, self.mount, self.delegated.__contains__)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def read(group: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in group.iterdir()}


def test_a_server_gets_a_group_with_its_limits_and_the_daemon_moves_out_of_the_way(kernel: Kernel) -> None:
    (kernel.own / "cgroup.procs").write_text("4242\n")
    groups = kernel.groups()
    assert not (kernel.own / "daemon").exists(), "nothing is changed before it is needed"
    group = groups.make(LIMITS)
    assert group == kernel.own / f"server-{os.getpid()}-1"
    assert read(group) == {
        "memory.max": "2097152",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "7",
        "cpu.max": "50000 100000",
    }
    assert read(kernel.own / "daemon") == {"cgroup.procs": "4242"}
    assert (kernel.own / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"
    groups.remove(group)
    assert not group.exists()
    assert groups.make(Allotment(processes=1)) == kernel.own / f"server-{os.getpid()}-2"


def test_with_a_subgroup_for_the_daemon_that_above_is_divided(kernel: Kernel) -> None:
    kernel.enter(kernel.own / "daemon")
    assert kernel.groups().make(LIMITS) == kernel.own / f"server-{os.getpid()}-1"


def test_what_was_not_given_away_is_left_alone(kernel: Kernel) -> None:
    kernel.delegated = set()
    groups = kernel.groups()
    assert groups.controllers == frozenset()
    assert groups.make(LIMITS) is None
    assert sorted(read(kernel.own)) == ["cgroup.controllers", "cgroup.procs"]
    assert not is_delegated(kernel.own)


def test_without_a_controller_its_limits_are_for_others(kernel: Kernel) -> None:
    (kernel.own / "cgroup.controllers").write_text("pids\n")
    groups = kernel.groups()
    assert groups.controllers == {"pids"}
    group = groups.make(LIMITS)
    assert group is not None
    assert read(group) == {"pids.max": "7"}


def test_where_it_does_not_work_servers_have_no_groups_and_the_log_says_so_once(
    kernel: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    groups = kernel.groups()
    (kernel.own / "cgroup.subtree_control").mkdir()  # nobody can write there
    assert groups.make(LIMITS) is None
    assert groups.make(LIMITS) is None
    assert groups.controllers == frozenset()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_what_a_daemon_before_left_is_removed_and_nothing_of_one_that_lives(kernel: Kernel) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left = [f"server-{ended.pid}-1", f"server-{os.getpid()}-9", "server-", "server-99999999999999999999-1"]
    kept = [f"server-{os.getppid()}-1", "other-1"]
    for name in (*left, *kept):
        (kernel.own / name).mkdir()
    kernel.groups().make(LIMITS)
    assert [name for name in (*left, *kept) if (kernel.own / name).exists()] == kept


def test_the_kernel_tells_whom_it_killed(tmp_path: Path) -> None:
    assert not was_out_of_memory(tmp_path)
    for count, killed in ((0, False), (3, True)):
        (tmp_path / "memory.events").write_text(f"low 0\nmax 9\noom 4\noom_kill {count}\noom_group_kill 0\n")
        assert was_out_of_memory(tmp_path) == killed
    (tmp_path / "memory.events").write_bytes(b"\xe2")
    assert not was_out_of_memory(tmp_path)


def test_no_limit_needs_no_file() -> None:
    assert settings_of(Allotment(files=3), frozenset({"memory", "pids", "cpu"})) == {}
    assert settings_of(LIMITS, frozenset()) == {}


@pytest.mark.skipif(not Groups().controllers, reason="no control group is delegated to us here")
def test_a_real_group_is_made_and_removed() -> None:
    groups = Groups()
    group = groups.make(LIMITS)
    assert group is not None
    assert int((group / "memory.max").read_text()) == LIMITS.memory_bytes
    assert str(os.getpid()) not in (group / "cgroup.procs").read_text().split()
    groups.remove(group)
    assert not group.exists()
