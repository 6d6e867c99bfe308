"""Names of further tools of the servers that a page begins with."""

from __future__ import annotations

import pytest

from supervisor.metatools.page import MAX_TOKENS
from supervisor.metatools.texts import estimate_tokens
from tests.supervisor.metatools.test_discovery import ask, catalogue, named

MANY = [f"tool_number_{number}" for number in range(90)]
SEEN = catalogue(github=named("create_issue", "fork", "star"), big=named("send_mail", *MANY), lonely=named("brew_tea"))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("create an issue", "github: fork, star"),
        ("brew tea", None),
        ("github:create_issue", None),
        ("*", None),
        ("nothing of the kind whatever", None),
    ],
)
def test_what_a_fitting_server_has_besides_is_named(query: str, said: str | None) -> None:
    assert ask(query, SEEN).get("other_tools") == said


def test_the_names_are_few_and_the_others_counted() -> None:
    answer = ask("send a mail", SEEN)
    assert estimate_tokens(answer["other_tools"]) <= MAX_TOKENS
    assert answer["other_tools"].startswith("big: tool_number_0")
    shown = {row["tool_path"] for row in answer["tools"]}
    assert not any(f"big:{name}" in shown for name in answer["other_tools"].split(" and ")[0][5:].split(", "))
    assert "other_tools" not in ask("send a mail", SEEN, budget=300)
