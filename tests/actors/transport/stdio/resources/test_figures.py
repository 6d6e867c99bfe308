"""Memory and processor time of servers: of all processes of each, taken seldom, and nothing where nobody can tell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actors.transport.stdio.resources import figures as module
from actors.transport.stdio.resources.figures import SAMPLE_S, Figures, read_trees, since_boot
from tests.fakes.want import no_threads

DAEMON = 5
PAGE = os.sysconf("SC_PAGE_SIZE")
TREE = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "x = bytearray(30_000_000); print(1, flush=True); input()"])
child.wait()
"""


class Machine:
    """A /proc of our own, and the seconds since the machine started."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.time = 100.0

    def set(
        self, pid: int, *, parent: int = DAEMON, leader: int = 0, ticks: int = 0, born: int = 0, name: str = "a"
    ) -> None:
        """A process; without a `leader` it leads its session."""
        session = str(leader or pid)
        after = ["S", str(parent), session, session, *["0"] * 7, str(ticks), "0", "0", "0", *["0"] * 4]
        (self.root / str(pid)).mkdir(exist_ok=True)
        text = f"{pid} ({name}) {' '.join(after)} {born} 0 3 0 0"
        (self.root / str(pid) / "stat").write_text(text, encoding="utf-8")

    def memory(self, pid: int, resident: int, shared: int) -> None:
        (self.root / str(pid) / "statm").write_text(f"900 {resident} {shared} 1 0 9 0\n", encoding="utf-8")

    def figures(self) -> Figures:
        return Figures(lambda: self.time, str(self.root), DAEMON)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def test_a_server_is_all_that_is_below_its_shim_but_the_shim(machine: Machine) -> None:
    machine.set(DAEMON, parent=1)
    machine.set(9, leader=DAEMON, ticks=7000)  # the shim
    machine.set(10, parent=9, ticks=100, born=9000)
    machine.set(11, parent=10, leader=10, ticks=50, born=9500, name="od d) S 1 (x")
    machine.set(12, parent=9, ticks=50, born=9600)  # it made itself a daemon
    machine.set(20, ticks=9)
    machine.set(21, parent=1, ticks=900)  # of somebody else
    (machine.root / "self").mkdir()
    (machine.root / "30").mkdir()  # it has just ended
    figures = await machine.figures().get()
    assert (figures[10].processes, figures[10].cpu_s) == (3, 2.0)
    assert figures[10].cpu_percent == 20.0, "2 s of the 10 since it started"
    assert figures[20].cpu_s == 0.09
    assert 21 not in figures
    assert 9 not in figures


async def test_what_processes_share_counts_once(machine: Machine) -> None:
    machine.set(10)
    machine.memory(10, resident=50, shared=30)
    machine.set(11, parent=10, leader=10)
    machine.memory(11, resident=45, shared=40)
    machine.set(12, parent=10, leader=10)  # what it has cannot be read: all of it counts
    assert (await machine.figures().get())[10].memory_bytes == (20 + 5 + 3 + 40) * PAGE


def test_a_ring_of_parents_ends(machine: Machine) -> None:
    machine.set(10, parent=11)
    machine.set(11, parent=10)
    assert read_trees(str(machine.root), DAEMON) == {}


async def test_the_share_is_of_the_time_since_the_figures_were_taken_before(machine: Machine) -> None:
    figures = machine.figures()
    machine.set(10, ticks=100, born=1000)
    await figures.get()
    machine.set(10, ticks=500, born=1000)
    machine.time += SAMPLE_S - 0.5
    assert (await figures.get())[10].cpu_s == 1.0, "they are taken seldom"
    machine.time += 0.5
    assert (await figures.get())[10].cpu_percent == round(100 * 4 / SAMPLE_S, 1)


async def test_another_process_of_the_same_number_has_figures_of_its_own(machine: Machine) -> None:
    figures = machine.figures()
    machine.set(10, ticks=5000, born=1000)
    await figures.get()
    machine.time = 200.0
    machine.set(10, ticks=100, born=19000)
    assert (await figures.get())[10].cpu_percent == 10.0


async def test_children_that_end_unseen_take_nothing_away(machine: Machine) -> None:
    figures = machine.figures()
    machine.set(10, ticks=100, born=1000)
    await figures.get()
    machine.set(10, ticks=50, born=1000)
    machine.time += SAMPLE_S
    assert (await figures.get())[10].cpu_percent == 0.0


async def test_where_nobody_can_tell_there_are_none(machine: Machine) -> None:
    assert await Figures(lambda: 1.0, str(machine.root / "missing")).get() == {}
    machine.set(10)
    with no_threads():
        assert await machine.figures().get() == {}


@contextmanager
def tree() -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        try:
            yield process.pid
        finally:
            process.communicate(b"\n")


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
async def test_real_processes_have_what_their_children_have() -> None:
    with tree() as pid:
        figures = (await Figures(since_boot).get())[pid]
    assert figures.memory_bytes > 30_000_000
    assert 0 < figures.cpu_s < 60
    assert figures.cpu_percent > 0
    assert module.SAMPLE_S >= 1
