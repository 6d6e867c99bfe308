"""`me`: what somebody has to say yes to, in words."""

from __future__ import annotations

from typing import Any

import pytest

from supervisor.commands.me import confirm_text


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ({}, ""),
        ({"level": "moderate"}, "you are asked for a yes to: what is moderate or worse"),
        ({"level": "safe", "tools": ["a:*"]}, "you are asked for a yes to: what is safe or worse, a:*"),
        ({"level": "safe", "mode": "run"}, "tools run without a yes of yours"),
        ({"mode": "refuse"}, "what needs a yes is refused to you"),
        ({"tools": ["a:*"], "mode": "refuse"}, "what needs a yes is refused to you, also: a:*"),
    ],
)
def test_it_says_what_somebody_is_asked(rules: dict[str, Any], text: str) -> None:
    assert confirm_text({"level": None, "tools": [], "mode": "ask", **rules}) == text
