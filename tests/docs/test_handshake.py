"""The conversations in the pages for developers of clients are those that a real daemon has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio

from tests.docs.transcripts import UNSHOWN, Meanings, blocks, play
from tests.e2e.daemons import ROOT, Daemon, running, stand_in

PAGES = ROOT / "docs" / "developers"
ANSWERS = {"changes": 2, "handshake": 8, "progress": 2, "questions": 7, "resuming": 2}
"""How many answers each page shows."""
CALCULATOR = {"command": sys.executable, "args": ["-m", "supervisor.demo.calculator"], "env": {"PYTHONPATH": str(ROOT)}}
DESK = stand_in("talkative", ask="everyone")
"""Tells of its work, and asks."""
SERVERS = {"handshake": {"calculator": CALCULATOR}, "changes": {"growing": stand_in("growing")}}


@pytest.mark.e2e
@pytest.mark.parametrize("name", ANSWERS)
def test_a_conversation_is_that_of_a_real_daemon(tmp_path: Path, name: str) -> None:
    with running(tmp_path, SERVERS.get(name, {"desk": DESK})) as daemon:
        trio.run(daemon.ready)
        known = {} if name == "handshake" else {"session": trio.run(daemon.session)}
        assert play(PAGES / f"{name}.md", daemon, known, grow) == ANSWERS[name]


async def grow(daemon: Daemon) -> None:
    await daemon.execute("growing:grow")


def test_every_page_with_a_conversation_is_played() -> None:
    assert {page.stem for page in PAGES.glob("*.md") if blocks(page)} == set(ANSWERS)


def test_what_the_transcript_leaves_out_is_named() -> None:
    text = (PAGES / "handshake.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in UNSHOWN)


def test_a_placeholder_stands_for_one_thing() -> None:
    meanings = Meanings({})
    meanings.check('{"id":"<one>","more":1}', '{"id":"a(b","more":1}')
    meanings.check("<one>-<two>-<two>", "a(b-c-c")
    assert meanings.fill("<two>, <one>") == "c, a(b"
    with pytest.raises(AssertionError, match="the page shows"):
        meanings.check("<one>", "other")
    with pytest.raises(AssertionError, match="the page shows"):
        meanings.check("<three>-<three>", "a-b")
    with pytest.raises(KeyError):
        meanings.fill("<three>")
