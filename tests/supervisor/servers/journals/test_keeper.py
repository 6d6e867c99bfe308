"""Logs outlive the daemon: written behind, bounded, without secrets; no disk harms anybody."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from actors.kit import Conditions, Latest
from actors.launch import launch_name
from actors.server.operators.journal import Journal
from actors.transport.redaction import Mask
from supervisor.config import Settings
from supervisor.config.entry import ServerConfig
from supervisor.servers.deployment import Deployment
from supervisor.servers.journals import keeper as module
from supervisor.servers.journals.files import LogFiles, ReadLimit, Wanted, file_name
from supervisor.servers.journals.journals import Journals
from supervisor.servers.journals.keeper import WHAT, LogKeeper, LogReader
from tests.fakes.want import no_threads

SECRET = "correct-horse-battery-77"
OPEN = Mask({})
OWN = launch_name("a", "0123456789abcdef" * 2)


class Rig:
    """One daemon after the other over the same directory, as far as logs go."""

    def __init__(self, root: Path) -> None:
        self.root = root / "logs"
        self.time = 1000.0
        self.settings: dict[str, Any] = {}
        self.begin()

    def begin(self) -> None:
        """Begin another run of the daemon."""
        self.time += 10
        self.conditions = Conditions(lambda: self.time)
        self.deployment = Latest(self._deployment())
        self.journals = Journals(lambda: self.time, now=lambda: self.time)
        self.keeper = LogKeeper(LogFiles(self.root), self.journals, self.deployment, self.conditions, lambda: self.time)
        self.reader = LogReader(self.journals, self.keeper)

    def _deployment(self, *servers: str) -> Deployment:
        entries = {name: ServerConfig(name=name, command="x") for name in servers or ("a", "b")}
        return Deployment(settings=Settings(**self.settings), entries=entries)

    def configure(self, *servers: str, **settings: Any) -> None:
        self.settings |= settings
        self.deployment.set(self._deployment(*servers))

    def journal(self, launch: str = "a", mask: Mask = OPEN) -> Journal:
        return self.journals.make(launch, mask)

    async def texts(self, *launches: str, **more: Any) -> list[str]:
        wanted = Wanted(**{"lines": 1000, **more})
        page = await self.reader.page(launches or ("a",), wanted, lambda launch: str)
        return [line.text for line in page.lines]

    def written(self, launch: str = "a") -> list[str]:
        lines = LogFiles(self.root).newest_first(launch, ReadLimit(10**9, 60.0))
        return [line.text for line in lines][::-1]

    def bytes_on_disk(self) -> bytes:
        return b"".join(file.read_bytes() for file in self.root.iterdir()) if self.root.is_dir() else b""


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_what_was_written_before_is_shown_after_a_restart(rig: Rig) -> None:
    rig.journal().overhear("stderr", b"one\ntwo\n")
    rig.journal().note("it died")
    assert await rig.keeper.flush()
    rig.begin()
    assert await rig.texts() == ["one", "two", "it died"]
    rig.journal().overhear("stderr", b"three\n")
    assert await rig.texts() == ["one", "two", "it died", "three"]
    await rig.keeper.flush()
    rig.journal().note("four")
    assert await rig.texts() == ["one", "two", "it died", "three", "four"], "each once"
    assert await rig.texts(lines=2) == ["three", "four"]
    numbers = [line.number for line in (await rig.reader.page(["a"], Wanted(lines=9), lambda launch: str)).lines]
    assert numbers == sorted(set(numbers))
    assert await rig.texts(before=numbers[3]) == ["one", "two", "it died"]


async def test_a_line_that_fell_out_of_memory_is_read_from_the_disk(rig: Rig) -> None:
    rig.journal().overhear("stderr", b"the first\n")
    await rig.keeper.flush()
    rig.journal().overhear("stderr", b"x" * 4000 + b"\n")
    for _ in range(200):
        rig.journal().overhear("stderr", b"x" * 4000 + b"\n")
    assert "the first" not in [line.data.decode() for line in rig.journal().last(10_000)]
    assert (await rig.texts(grep="FIRST")) == ["the first"]


@pytest.mark.case("S31")
async def test_a_flood_is_written_in_part_and_says_so(rig: Rig) -> None:
    for round_ in range(20):
        rig.journal().overhear("stderr", b"".join(b"%d\n" % number for number in range(900)))
        if round_ % 5 == 0:
            await rig.keeper.flush()
    await rig.keeper.flush()
    written = rig.written()
    assert written[-1] == "899"
    assert sum("were not written to the disk: they came too fast" in text for text in written) == 4
    assert len(written) <= 5 * module.MAX_BATCH_LINES


async def test_many_servers_share_what_is_written_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_LINES", 100)
    for name in "abcdefghij":
        rig.journal(name).overhear("stderr", b"x\n" * 900)
    await rig.keeper.flush()
    assert {len(rig.written(name)) for name in "abcdefghij"} == {module.MIN_LINES + 1}


async def test_a_line_without_an_end_is_written_once_it_is_quiet(rig: Rig) -> None:
    rig.journal().overhear("stderr", b"Ok to proceed? ")
    await rig.keeper.flush()
    assert rig.written() == []
    rig.time += 2
    await rig.keeper.flush()
    assert rig.written() == ["Ok to proceed?"]


# Secrets --------------------------------------------------------------------------------------------------------------


async def test_no_secret_reaches_the_disk(rig: Rig) -> None:
    journal = rig.journal(mask=Mask({"KEY": SECRET}))
    journal.overhear("stderr", f"my key is {SECRET}\nAuthorization: Bearer abcdef0123456789\n".encode())
    for place in range(0, 8000, 500):
        journal.overhear("stderr", b"y" * place + SECRET.encode() + b"\n")
    journal.note(f"it said {SECRET}")
    await rig.keeper.flush()
    assert rig.written()[:2] == ["my key is ***", "Authorization: Bearer ***"]
    for part in (SECRET, SECRET[:12], SECRET[-12:], "abcdef0123456789"):
        assert part.encode() not in rig.bytes_on_disk()


async def test_a_secret_that_is_given_later_is_taken_out_of_what_was_written(rig: Rig) -> None:
    rig.journal().overhear("stderr", f"pairing code {SECRET}\n".encode())
    await rig.keeper.flush()
    assert SECRET.encode() in rig.bytes_on_disk()
    rig.journal(mask=Mask({"KEY": SECRET}))
    assert await rig.texts() == ["pairing code ***"]
    await rig.keeper.flush()
    assert rig.written() == ["pairing code ***"]
    assert SECRET.encode() not in rig.bytes_on_disk()


async def test_a_secret_that_was_configured_while_no_daemon_ran_is_taken_out_too(rig: Rig) -> None:
    rig.journal().overhear("stderr", f"pairing code {SECRET}\n".encode())
    await rig.keeper.flush()
    rig.begin()
    rig.journal(mask=Mask({"KEY": SECRET}))
    assert await rig.texts() == ["pairing code ***"]
    await rig.keeper.flush()
    assert SECRET.encode() not in rig.bytes_on_disk()


async def test_what_there_is_no_time_to_mask_is_masked_later(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MASK_S", -1.0)
    for name in ("a", "b"):
        rig.journal(name).overhear("stderr", f"pairing code {SECRET}\n".encode())
    await rig.keeper.flush()
    for name in ("a", "b"):
        rig.journal(name, Mask({"KEY": SECRET}))
    await rig.keeper.flush()
    assert SECRET.encode() in rig.bytes_on_disk()
    monkeypatch.setattr(module, "MASK_S", 60.0)
    await rig.keeper.flush()
    assert SECRET.encode() not in rig.bytes_on_disk()


async def test_whoever_reads_the_disk_is_given_the_mask_of_a_launch_without_a_journal(rig: Rig) -> None:
    rig.journal(OWN).overhear("stderr", f"pairing code {SECRET}\n".encode())
    await rig.keeper.flush()
    rig.begin()
    page = await rig.reader.page([OWN], Wanted(lines=9), lambda launch: Mask({"KEY": SECRET}))
    assert [line.text for line in page.lines] == ["pairing code ***"]


# People ---------------------------------------------------------------------------------------------------------------


async def test_a_member_sees_the_lines_alone_that_came_while_the_launch_was_theirs_alone(rig: Rig) -> None:
    people = list[str]()
    rig.journals.people_of = lambda launch: people
    for people in (["ana"], ["ana", "ben"], ["ana"], []):
        rig.journal(OWN).overhear("stderr", f"of {' and '.join(people)}\n".encode())
        await rig.keeper.flush()
    for _ in range(2):
        assert await rig.texts(OWN, user="ana") == ["of ana", "of ana"]
        assert await rig.texts(OWN, user="ben") == []
        assert len(await rig.texts(OWN)) == 4
        rig.begin()


# Removing -------------------------------------------------------------------------------------------------------------


async def test_a_server_that_is_not_configured_any_more_leaves_nothing(rig: Rig) -> None:
    for launch in ("a", OWN, "b"):
        rig.journal(launch).note("hello")
    await rig.keeper.flush()
    leaving = rig.journal("a")
    rig.journals.drop("a")
    leaving.note("its last words")
    await rig.keeper.flush()
    assert (rig.written("a"), rig.written(OWN), rig.written("b")) == ([], [], ["hello"])
    rig.journal("a").note("it came back")
    await rig.keeper.flush()
    assert rig.written("a") == ["it came back"]


async def test_a_server_that_was_removed_while_no_daemon_ran_leaves_nothing(rig: Rig) -> None:
    for launch in ("a", OWN, "b"):
        rig.journal(launch).note("hello")
    await rig.keeper.flush()
    rig.begin()
    rig.configure("b")
    await rig.keeper.flush()
    assert (rig.written("a"), rig.written(OWN), rig.written("b")) == ([], [], ["hello"])


async def test_switched_off_nothing_is_written_and_what_was_is_removed(rig: Rig) -> None:
    rig.journal().note("hello")
    await rig.keeper.flush()
    rig.configure(server_log_bytes=0)
    rig.journal().note("in memory")
    await rig.keeper.flush()
    assert list(rig.root.iterdir()) == []
    assert (await rig.texts())[-1] == "in memory"
    rig.begin()
    rig.journal().note("in memory again")
    await rig.keeper.flush()
    assert list(rig.root.iterdir()) == []
    rig.configure(server_log_bytes=10_000)
    rig.journal().note("on the disk")
    await rig.keeper.flush()
    assert rig.written()[-1] == "on the disk"


# The disk -------------------------------------------------------------------------------------------------------------


def failing(number: int) -> Callable[..., int]:
    def fail(*_arguments: Any) -> int:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.case("D11")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE])
async def test_a_disk_that_fails_is_a_condition_and_is_tried_again(
    rig: Rig, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.journal().note("first")
    await rig.keeper.flush()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", failing(number))
        rig.journal().note("second")
        assert not await rig.keeper.flush()
        (condition,) = rig.conditions.now()
        assert (condition.what, condition.why) == (WHAT, f"nothing more is written to the disk: {os.strerror(number)}")
        page = await rig.reader.page(["a"], Wanted(lines=9), lambda launch: str)
        assert ([line.text for line in page.lines], page.complete) == (["first", "second"], False)
    assert await rig.keeper.flush()
    assert rig.conditions.now() == []
    assert rig.written() == ["first", "second"]


async def test_want_of_threads_is_a_condition_too(rig: Rig) -> None:
    rig.journal().note("first")
    with no_threads():
        assert not await rig.keeper.flush()
        assert await rig.texts() == ["first"]
    assert await rig.keeper.flush()
    assert rig.written() == ["first"]


async def test_a_disk_that_does_not_answer_holds_nobody_up_and_nothing_is_shown_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, append = threading.Event(), LogFiles.append

    def hang(*arguments: Any) -> None:
        may_go_on.wait(60)
        append(*arguments)

    monkeypatch.setattr(LogFiles, "append", hang)
    monkeypatch.setattr(module, "ANSWER_S", 0.01)
    rig.journal().note("first")
    use = rig.keeper.use
    monkeypatch.setattr(rig.keeper, "use", lambda work, answer_s=0.01: use(work, 0.01))
    assert not await rig.keeper.flush()
    assert "did not answer within" in rig.conditions.now()[0].why
    assert await rig.texts() == ["first"]
    may_go_on.set()
    monkeypatch.setattr(rig.keeper, "use", use)
    assert await rig.keeper.flush()
    assert rig.written() == ["first", "first"]
    assert await rig.texts() == ["first"]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINGER_S", 0.001)
    monkeypatch.setattr(module, "REST", 0.0)


@pytest.mark.usefixtures("at_once")
async def test_it_writes_by_itself_whenever_there_is_more(rig: Rig) -> None:
    async def until_written(*texts: str) -> None:
        while rig.written() != [*texts]:  # noqa: ASYNC110 - the disk tells nobody
            await trio.sleep(0.001)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.keeper.run)
            rig.journal().note("first")
            await until_written("first")
            rig.journal().overhear("stderr", b"second, without an end")
            await trio.testing.wait_all_tasks_blocked()
            rig.time += 2
            await until_written("first", "second, without an end")
            rig.configure(server_log_bytes=0)  # nobody says a word, and it is done all the same
            await until_written()
            nursery.cancel_scope.cancel()


@pytest.mark.usefixtures("at_once")
async def test_it_goes_on_when_the_disk_works_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            with monkeypatch.context() as patched:
                patched.setattr(os, "open", failing(errno.ENOSPC))
                rig.journal().note("first")
                nursery.start_soon(rig.keeper.run)
                await rig.conditions.present(WHAT)
            while rig.conditions.now():  # noqa: ASYNC110 - nobody waits for an end of one but us
                await trio.sleep(0.001)
            assert rig.written() == ["first"]
            nursery.cancel_scope.cancel()


async def test_the_last_words_before_the_end_are_written(rig: Rig) -> None:
    rig.journal().note("stopped")
    await rig.keeper.close()
    assert rig.written() == ["stopped"]
    assert (rig.root / file_name("a")).exists()


async def test_all_logs_are_merged_by_time_also_from_the_disk(rig: Rig) -> None:
    for number in range(6):
        rig.time += 1
        rig.journal("ab"[number % 2]).note(str(number))
    await rig.keeper.flush()
    rig.begin()
    rig.journal("b").note("6")
    assert await rig.texts("a", "b") == [str(number) for number in range(7)]
    assert await rig.texts("a", "b", lines=3) == ["4", "5", "6"]
