"""Who is answered what at which address is as it was recorded, and every address is; see `test_recording`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.recording.play import RECORDED, unlike

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", ["routes.txt", "routes-for-all.txt"])
def test_everybody_is_answered_as_it_was_recorded_at_every_address_of_the_documentation(name: str) -> None:
    asked = re.findall(r"^> each ([^\s?]+)", (RECORDED / name).read_text(encoding="utf-8"), re.MULTILINE)
    pages = [(REFERENCE / page).read_text(encoding="utf-8") for page in ("http.md", "dashboard.md")]
    routes = {route for page in pages for route in re.findall(r"\*\*`\w+ (/\S*)`\*\*", page)}
    patterns = {route: re.compile(re.sub(r"\{\w+\}", "[^/]+", route)) for route in routes}
    assert [route for route, pattern in patterns.items() if not any(map(pattern.fullmatch, asked))] == []
    if told := unlike(name):
        pytest.fail(told, pytrace=False)
