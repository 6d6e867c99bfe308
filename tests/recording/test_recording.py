"""The outside of the daemon is as it was recorded: `python -m tests.recording --write` records it anew."""

from __future__ import annotations

import pytest

from tests.recording.play import transcripts, unlike


@pytest.mark.parametrize("name", [name for name in transcripts() if not name.startswith("routes")])
def test_what_people_and_programs_see_is_as_it_was_recorded(name: str) -> None:
    if told := unlike(name):
        pytest.fail(told, pytrace=False)
