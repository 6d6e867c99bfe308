"""Files that change in every way that people, editors and volumes have; nothing is left of the watch afterwards."""

from __future__ import annotations

import inspect
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from supervisor.host import watching
from supervisor.host.logs import logging_to_stderr
from supervisor.host.watching import Events, FileWatch, places, stamp

SOON_S = 20.0
"""No claim: by then a machine that is busy with other things has told of it, too."""
QUIET_S = 0.4
RARELY_S = 3600.0
"""So the system has to tell."""


class Told:
    """How often the watch has said that something changed."""

    def __init__(self) -> None:
        self.times = 0
        self._more = trio.Event()

    def __call__(self) -> None:
        self.times += 1
        self._more.set()

    async def more(self) -> None:
        """Wait until it has been said since the last time that this was waited for."""
        with trio.fail_after(SOON_S):
            await self._more.wait()
        self._more = trio.Event()


@pytest.fixture(autouse=True)
def short_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_SETTLE_S", 0.01)


@asynccontextmanager
async def watched(*files: Path, poll_s: float = RARELY_S) -> AsyncIterator[Told]:
    """Watch files, and wait until the watch has looked at them."""
    told, looks = Told(), trio.Event()

    class Noted(FileWatch):
        async def _look(self, events: Events) -> dict[Path, watching.Stamp]:
            seen = await super()._look(events)
            looks.set()
            return seen

    async with trio.open_nursery() as nursery:
        nursery.start_soon(Noted(lambda: files, told, poll_s).run)
        await looks.wait()
        yield told
        nursery.cancel_scope.cancel()


@pytest.fixture
def clean() -> Iterator[None]:
    """No thread of the watch and no descriptor of it outlives a test, but for those that the library has once."""
    events = Events(lambda: None)
    events.watch({Path("/nothing")})
    events.close()
    before = len(list(Path("/proc/self/fd").iterdir()))
    yield
    assert len([thread for thread in threading.enumerate() if "watchdog" in type(thread).__module__]) <= 1
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def replaced(file: Path, text: str) -> None:
    """Save as most editors do."""
    new = file.with_name(f".{file.name}.swp")
    new.write_text(text)
    new.replace(file)


def appended(file: Path, text: str) -> None:
    with file.open("a") as out:
        out.write(text)


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("poll_s", [RARELY_S, 0.05])
@pytest.mark.parametrize("save", [Path.write_text, replaced, appended])
async def test_a_file_that_is_saved_is_told_of(
    tmp_path: Path, save: Callable[[Path, str], object], poll_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("1")
    if poll_s < RARELY_S:
        monkeypatch.setattr(Events, "_observe", failing)
    async with watched(file, poll_s=poll_s) as told:
        for text in ("22", "333"):
            save(file, text)
            await told.more()


def failing(*_: object) -> None:
    raise OSError("no room for more watches")


@pytest.mark.case("D08")
@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize("save", [Path.write_text, replaced])
async def test_a_file_whose_time_and_size_stay_the_same_is_told_of(
    tmp_path: Path, save: Callable[[Path, str], object]
) -> None:
    file = tmp_path / "mcp.json"
    save(file, "11")
    os.utime(file, (1e9, 1e9))
    async with watched(file) as told:
        for text in ("22", "33"):
            save(file, text)
            os.utime(file, (1e9, 1e9))
            await told.more()


@pytest.mark.usefixtures("clean")
async def test_a_file_that_is_removed_and_comes_back_is_told_of_twice(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("1")
    async with watched(file) as told:
        file.unlink()
        await told.more()
        file.write_text("1")
        await told.more()


@pytest.mark.usefixtures("clean")
async def test_a_link_that_is_given_another_target_and_a_target_that_is_saved_are_told_of(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "real.json").write_text(name)
    link = tmp_path / "mcp.json"
    link.symlink_to("one/real.json")
    async with watched(link) as told:
        replaced(tmp_path / "one" / "real.json", "other")
        await told.more()
        new = tmp_path / "new"
        new.symlink_to(tmp_path / "two" / "real.json")
        new.replace(link)
        await told.more()
        appended(tmp_path / "two" / "real.json", "more")  # from now on that one counts
        await told.more()


@pytest.mark.case("D08")
@pytest.mark.usefixtures("clean")
async def test_a_directory_of_a_mounted_volume_that_is_swapped_by_a_link_is_told_of(tmp_path: Path) -> None:
    """As Kubernetes updates a ConfigMap: the file is a link through a link to a directory, which is replaced."""
    for name in ("..1", "..2", "..3"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mcp.json").write_text(name)
    (tmp_path / "..data").symlink_to("..1")
    file = tmp_path / "mcp.json"
    file.symlink_to("..data/mcp.json")
    async with watched(file) as told:
        for name in ("..2", "..3"):
            new = tmp_path / "..data_tmp"
            new.symlink_to(name)
            new.replace(tmp_path / "..data")
            await told.more()
    assert file.read_text() == "..3"


@pytest.mark.usefixtures("clean")
async def test_a_directory_that_is_not_there_costs_other_files_nothing_and_is_looked_for(tmp_path: Path) -> None:
    here, nowhere = tmp_path / "mcp.json", tmp_path / "later" / "of.env"
    here.write_text("1")
    async with watched(nowhere, here) as told:
        here.write_text("22")
        await told.more()
    async with watched(nowhere, here, poll_s=0.05) as told:
        nowhere.parent.mkdir()
        nowhere.write_text("KEY=1")
        await told.more()


@pytest.mark.usefixtures("clean")
async def test_who_only_reads_or_changes_what_stands_beside_it_is_not_told_of(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("1")
    async with watched(file, poll_s=0.05) as told:
        for number in range(5):
            file.read_text()
            (tmp_path / f"other{number}").write_text("x")
        await trio.sleep(QUIET_S)
        assert told.times == 0


@pytest.mark.case("D08")
@pytest.mark.usefixtures("clean")
async def test_a_file_that_is_written_slowly_is_told_of_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_SETTLE_S", 0.2)
    file = tmp_path / "mcp.json"
    file.write_text("")
    sizes = list[int]()
    async with watched(file) as told, trio.open_nursery() as nursery:

        async def note() -> None:
            await told.more()
            sizes.append(file.stat().st_size)

        nursery.start_soon(note)
        for _ in range(4):
            appended(file, "x")
            await trio.sleep(0.02)
    assert sizes == [4]


@pytest.mark.usefixtures("clean")
async def test_what_else_is_to_be_watched_is_from_the_next_look_on(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "mcp.json", tmp_path / "b" / "of.env"
    for file in (first, second):
        file.parent.mkdir()
        file.write_text("1")
    files, told = [first], Told()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(FileWatch(lambda: tuple(files), told, 0.05).run)
        await trio.sleep(0.1)
        files.append(second)
        await told.more()  # one that was not known before has changed, too
        second.write_text("22")
        await told.more()
        nursery.cancel_scope.cancel()


def test_the_places_of_a_path_are_those_of_each_link_on_its_way_and_a_circle_ends(tmp_path: Path) -> None:
    real = tmp_path.resolve() / "real"
    real.mkdir()
    (real / "mcp.json").write_text("1")
    (tmp_path / "dir").symlink_to(real)
    (tmp_path / "dir2").symlink_to("./dir")
    file = tmp_path / "dir2" / "mcp.json"
    assert places(file) >= {file, tmp_path / "dir2", tmp_path / "dir", tmp_path / "dir" / "mcp.json", real / "mcp.json"}
    (tmp_path / "x").symlink_to("y")
    (tmp_path / "y").symlink_to("x")
    assert len(places(tmp_path / "x" / "mcp.json")) <= 2 * watching.MAX_LINKS
    assert stamp(tmp_path / "x") is None


@pytest.mark.usefixtures("clean")
def test_what_could_not_be_watched_leaves_no_thread(tmp_path: Path) -> None:
    events = Events(lambda: None)
    for number in range(20):
        events.watch({tmp_path / "mcp.json", tmp_path / f"none{number}" / "x"})
    events.close()
    events.close()


@pytest.mark.usefixtures("clean")
async def test_a_log_that_is_written_beside_the_file_does_not_feed_itself(tmp_path: Path) -> None:
    """What tells of files logs each event, which would be the next event."""
    file, log = tmp_path / "mcp.json", tmp_path / "log"
    file.write_text("1")
    with log.open("wb") as out, logging_to_stderr("debug", out.fileno()):
        async with watched(file) as told:
            logging.getLogger("servers").debug("begins")
            file.write_text("22")
            await told.more()
            await trio.sleep(QUIET_S)
    assert "begins" in log.read_text()
    assert "inotify" not in log.read_text()


@pytest.mark.case("D08")
async def test_what_changed_between_its_reading_and_the_beginning_of_the_watch_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("old")
    read = {file: stamp(file)}
    file.write_text("newer")
    told = trio.Event()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(FileWatch(lambda: read, told.set, 0.01, read).run)
            await told.wait()
            nursery.cancel_scope.cancel()


def test_a_file_that_changes_while_the_watch_ends_is_no_error_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inotify = pytest.importorskip("watchdog.observers.inotify")
    events = Events(lambda: None)
    events.watch({tmp_path / "file"})
    events.close()
    said = "InotifyEmitter.queue_events() called when the thread is inactive"
    assert said in inspect.getsource(inotify)
    inotify.logger.error(said)
    inotify.logger.error("another one")
    assert [record.msg for record in caplog.records if record.name == inotify.logger.name] == ["another one"]
