"""The way of a call on its page is the one that a call goes, and the frames of it can be counted."""

from __future__ import annotations

import re
import sys

import pytest

from benchmarks.frames import CALLS, Recorder, Way, least, main, profiled, summary, ways
from supervisor.metatools.texts import clean
from tests import ratchet
from tests.docs.test_architecture_page import CONTRIBUTING, items, parts
from tests.sources import ROOT

PAGES = {"execute": "way-of-a-call.md", "discover": "way-of-a-search.md"}


def told(name: str) -> list[str]:
    """Every function on the page, in its order, as a frame is written."""
    frames = []
    page = (CONTRIBUTING / PAGES[name]).read_text(encoding="utf-8")
    for item in items(page, name):
        file, functions = parts(item, r"`([\w./]+\.py)`: (`[\w.]+`(?:, `[\w.]+`)*)(?:\. .+)?\.")
        frames += [f"{file}:{function}" for function in re.findall(r"`([\w.]+)`", functions)]
    return frames


def missing(told: list[str], frames: tuple[str, ...]) -> str:
    """The first of some functions that does not come after those before it; empty if all do."""
    place = 0
    for function in told:
        if function not in frames[place:]:
            return function
        place = frames.index(function, place) + 1
    return ""


def measured(paths: pytest.TempPathFactory) -> dict[str, list[Way]]:
    """Some calls of each tool, as a timer may fire during any of them."""
    return {name: ways(paths.mktemp(name), tool, 11) for name, tool in CALLS.items()}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Way]]:
    return measured(tmp_path_factory)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_goes_the_way_that_the_page_tells(name: str, found: dict[str, list[Way]]) -> None:
    way = least(found[name])
    assert missing(told(name), way.frames) == ""
    assert len(told(name)) >= 14
    row = summary(name, way)
    assert row["call"] == f"`{name}`"
    assert row["entries"] >= row["frames"] >= row["functions"] >= row["files"] > 40
    assert row["frames"] > row["arguments"] > 0
    assert {"supervisor/front", "actors/search" if name == "discover" else "actors"} <= way.rooms
    assert row["turns"] >= row["tasks"] > 0
    assert sys.getprofile() is None


def test_a_function_that_comes_too_late_is_told() -> None:
    assert missing(["a", "b"], ("a", "x", "b")) == ""
    assert missing(["b", "a"], ("a", "x", "b")) == "a"
    assert missing(["c"], ("a",)) == "c"


def test_a_frame_counts_once_and_only_while_it_is_recorded() -> None:
    recorder = Recorder()
    with profiled(recorder):
        clean("before")
        way = recorder.record(lambda: (clean("one"), clean("two")))
        clean("after")
    own = [frame for frame in way.frames if frame == "supervisor/metatools/texts.py:clean"]
    assert len(own) == 2
    assert way.entries == len(way.frames)
    assert (way.tasks, way.turns) == (0, 0)
    assert (ROOT / "supervisor/metatools/texts.py").is_file()


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="newer Pythons have no frames for comprehensions")
def test_no_call_goes_through_more_frames_or_files(
    found: dict[str, list[Way]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    # On a busy machine a request comes in two pieces, or a thread of the start goes on for long: that is more in one
    # daemon, and what is more in each of three is the code's.
    held = ratchet.held()["figures"]
    wrong = ratchet.wrong(ratchet.figures_of_calls(found), held)
    for _ in range(2):
        if wrong:
            wrong = ratchet.wrong(ratchet.figures_of_calls(measured(tmp_path_factory)), held)
    assert wrong == []


def test_the_program_prints_a_column_or_the_frames(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.frames.ways", lambda directory, tool, count: [Way(("a.py:f", "b.py:g"), 3, 1, 2)])
    monkeypatch.setattr(sys, "argv", ["frames"])
    main()
    head, line, *rest = capsys.readouterr().out.splitlines()
    assert (head, line) == ("| call | `execute` | `discover` |", "| --- | --- | --- |")
    names = ("entries", "frames", "functions", "files", "rooms", "arguments", "tasks", "turns")
    assert rest == [f"| {name} | {n} | {n} |" for name, n in zip(names, (3, 2, 2, 2, 1, 0, 1, 2), strict=True)]
    monkeypatch.setattr(sys, "argv", ["frames", "--list", "discover"])
    main()
    assert capsys.readouterr().out == "a.py:f\nb.py:g\n"


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_not_traced_enters_nothing_of_traces(name: str, found: dict[str, list[Way]]) -> None:
    for way in found[name]:
        assert not [frame for frame in way.frames if frame.startswith("supervisor/tracing/")]
