"""Starting a process: every reason for a failure, what a server inherits, and no leak whenever it is cancelled."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio

from actors.errors import SpawnFailed
from actors.transport.stdio.command import INHERITED, Launch
from actors.transport.stdio.containment import Containment, GroupContainment, ShimContainment
from actors.transport.stdio.process import ProcessTransport
from actors.transport.stdio.resources import room as module
from tests.actors.transport.stdio.children import (
    PATIENCE_S,
    decoded,
    descriptors,
    launch,
    monitor,
    no_child_and_no_descriptor_is_left,
    parent_of,
    send,
)

__all__ = ["no_child_and_no_descriptor_is_left"]

pytestmark = pytest.mark.process

both = pytest.mark.parametrize("containment", [ShimContainment(), GroupContainment()], ids=["shim", "group"])


async def failure(what: Launch, containment: Containment) -> SpawnFailed:
    with pytest.raises(SpawnFailed) as caught:
        async with ProcessTransport(what, containment=containment).connect():
            pytest.fail("it started")
    return caught.value


@pytest.mark.case("N02")
@both
async def test_a_text_file_is_a_permanent_failure_that_only_exec_sees(containment: Containment, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("just words\n")
    text.chmod(0o755)
    error = await failure(Launch(command=str(text)), containment)
    assert error.permanent
    assert error.message == f"{text} is neither a program nor a script with a #! line"


@pytest.mark.case("N06")
@both
async def test_arguments_that_are_too_long_are_a_permanent_failure(containment: Containment) -> None:
    error = await failure(Launch(command="/bin/true", args=("x" * 3_000_000,)), containment)
    assert error.permanent
    assert "too long" in error.message


@pytest.mark.case("N03")
@both
async def test_a_missing_working_directory_is_a_failure_that_a_repair_ends(
    containment: Containment, tmp_path: Path
) -> None:
    transport = ProcessTransport(Launch(command="/bin/cat", cwd=str(tmp_path / "later")), containment=containment)
    with pytest.raises(SpawnFailed, match="does not exist"):
        async with transport.connect():
            pytest.fail("it started")
    (tmp_path / "later").mkdir()
    async with transport.connect() as connection:
        assert connection.pid


@contextmanager
def few_descriptors(free: int) -> Iterator[None]:
    """Leave room for so many more open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    first = os.open("/dev/null", os.O_RDONLY)
    opened = [first]
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + free, hard))
    try:
        with suppress(OSError):
            while True:
                opened.append(os.open("/dev/null", os.O_RDONLY))
        for number in opened[len(opened) - free :]:
            os.close(number)
        del opened[len(opened) - free :]
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for number in opened:
            os.close(number)


@both
async def test_a_start_for_want_of_descriptors_fails_in_passing_and_leaks_none(
    containment: Containment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOM_S", 0.0)  # nobody gives any up here
    transport = ProcessTransport(launch("echo"), containment=containment)
    started: list[int] = []
    refused: list[SpawnFailed] = []
    gc.collect()  # what earlier tests left behind would otherwise go while this one counts
    for free in range(1, 16):
        before = descriptors()
        with few_descriptors(free), trio.fail_after(PATIENCE_S):
            try:
                async with transport.connect() as connection:
                    await connection.stop()
                    started.append(free)
            except SpawnFailed as error:
                refused.append(error)
        assert descriptors() == before
    assert refused
    assert started == list(range(len(refused) + 1, 16))
    assert not any(error.permanent for error in refused)
    assert all(error.scarce for error in refused)
    assert {error.message for error in refused} == {"the daemon has no free file descriptors (EMFILE)"}


@pytest.mark.case("N05")
@both
async def test_a_start_for_want_of_a_thread_fails_in_passing(
    containment: Containment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*args: object, **more: object) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(trio.to_thread, "run_sync", refuse)
        error = await failure(Launch(command="/bin/cat"), containment)
    assert error.scarce
    assert not error.permanent
    assert error.message == "the daemon may not start more processes or threads (EAGAIN)"


async def test_a_shim_that_dies_first_is_a_failure_that_may_pass_and_not_the_servers() -> None:
    error = await failure(Launch(command="/bin/cat"), ShimContainment(python="/bin/false"))
    assert not error.permanent
    assert error.scarce
    assert error.message == "the process that should start /bin/cat died first"


def silent_shim(place: Path, address: str) -> str:
    """An interpreter that never reports a pid but shows that it lives."""
    place.write_text(
        f"#!{sys.executable} -IS\nimport os, signal, socket\nlife = socket.socket(socket.AF_UNIX)\n"
        f"life.connect({address!r})\nlife.sendall(b'shim %d' % os.getpid())\nsignal.pause()\n"
    )
    place.chmod(0o755)
    return str(place)


async def test_a_start_that_hangs_ends_at_its_deadline(tmp_path: Path) -> None:
    async with monitor() as lives:
        hanging = ShimContainment(python=silent_shim(tmp_path / "python", lives.address), start_s=0.5)
        error = await failure(Launch(command="/bin/cat"), hanging)
        assert not error.permanent
        assert error.message == "/bin/cat could not be started within 0.5 s"


@pytest.mark.case("P24")
async def test_a_start_cancelled_between_fork_and_report_leaves_nothing(tmp_path: Path) -> None:
    async with monitor() as lives:
        async with trio.open_nursery() as nursery:
            hanging = ShimContainment(python=silent_shim(tmp_path / "python", lives.address))
            nursery.start_soon(failure, Launch(command="/bin/cat"), hanging)
            shim = (await lives.pulses("shim"))["shim"]
            nursery.cancel_scope.cancel()
        assert nursery.cancel_scope.cancelled_caught
        await shim.stopped()


@both
async def test_a_block_cancelled_while_the_server_runs_leaves_nothing(containment: Containment) -> None:
    async with monitor() as lives:
        with trio.CancelScope() as scope:
            async with ProcessTransport(launch("ignore_sigterm", lives.address), containment=containment).connect():
                server = (await lives.pulses("server"))["server"]
                scope.cancel()
                await trio.sleep_forever()
        assert scope.cancelled_caught
        await server.stopped()


@pytest.mark.case("P22")
@both
async def test_a_server_inherits_three_descriptors_few_variables_and_no_signal_settings(
    containment: Containment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMETHING_SECRET", "x")
    what = Launch(
        command=sys.executable,
        args=(*launch("describe_itself").args, "a b", "*"),
        env={"TOKEN": "t", "PATH": "/usr/bin:/bin"},
        cwd=str(tmp_path),
    )
    leaked = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leaked, True)
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(what, containment=containment).connect() as connection:
            [found] = [answer["result"] for answer in decoded((await connection.receive()).lines)]
    os.close(leaked)
    assert found["fds"] == [0, 1, 2]
    assert found["argv"] == ["a b", "*"]
    assert found["cwd"] == str(tmp_path)
    assert found["pid"] == found["pgid"] == found["sid"] == connection.pid
    assert found["umask"] == 0o077
    assert found["blocked"] == 0
    # LC_CTYPE is the server's own Python's, in the C locale.
    assert set(found["environment"]) <= {*INHERITED, "TOKEN", "LC_CTYPE"}
    assert found["environment"]["TOKEN"] == "t"


@pytest.mark.case("P22")
@both
async def test_signals_that_we_ignore_have_their_default_meaning_in_the_server(containment: Containment) -> None:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGUSR1)}
    try:
        what = Launch(command="/bin/sh", args=("-c", "grep SigIgn /proc/self/status >&2"))
        with trio.fail_after(PATIENCE_S):
            async with ProcessTransport(what, containment=containment).connect() as connection:
                ignored = int((await connection.wait()).last_stderr.split()[1], 16)
    finally:
        for number, action in before.items():
            signal.signal(number, action)
    if isinstance(containment, ShimContainment):
        assert ignored == 0
    assert not ignored & (1 << (signal.SIGPIPE - 1))


@both
async def test_the_environment_is_passed_byte_for_byte_and_nothing_is_added(
    containment: Containment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LANG"):  # in the C locale the shim's Python sets LC_CTYPE for itself
        monkeypatch.delenv(name, raising=False)
    show = Launch(command="/bin/sh", args=("-c", 'env -0 | tr "\\0\\n" "|~" >&2'), env={"ODD": "é\n=\udcff"})
    with trio.fail_after(PATIENCE_S):
        async with ProcessTransport(show, containment=containment).connect() as connection:
            shown = (await connection.wait()).last_stderr
    assert "|ODD=é~=\ufffd|" in "|" + shown
    assert "LC_" not in shown


@pytest.mark.case("P21")
async def test_no_descriptor_and_no_child_is_left_after_ten_cycles() -> None:
    transport = ProcessTransport(launch("echo"))
    counts = []
    for _ in range(10):
        with trio.fail_after(PATIENCE_S):
            async with transport.connect() as connection:
                assert connection.pid
                assert parent_of(connection.pid) != os.getpid()
                await send(connection, b'{"jsonrpc":"2.0"}')
                assert (await connection.receive()).lines == [b'{"jsonrpc":"2.0"}']
                await connection.stop()
        counts.append(descriptors())
    assert len(set(counts)) == 1
