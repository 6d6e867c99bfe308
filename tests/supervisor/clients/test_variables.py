"""References to the environment as clients spell them, in our spelling."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from supervisor.clients.entries import translate_references
from supervisor.config.clients import Variables
from supervisor.config.expansion import expand, has_reference


@pytest.mark.parametrize(
    ("spelling", "text", "ours"),
    [
        ("${env:X}", "a ${env:TOKEN} b", "a ${TOKEN} b"),
        ("${env:X}", "${userHome}/x", "${userHome}/x"),
        ("${env:X}", "${workspaceFolder}/x", "/p/x"),
        ("${X}", "${TOKEN:-none}", "${TOKEN:-none}"),
        ("$X", "Bearer $TOKEN/${OTHER}", "Bearer ${TOKEN}/${OTHER}"),
        ("$X", "100$ and $1", "100$ and $1"),
        ("{env:X}", "{env:TOKEN} ${x}", "${TOKEN} $${x}"),
        ("", "${TOKEN} $X", "$${TOKEN} $X"),
    ],
)
def test_a_reference_is_one_of_ours(spelling: Variables, text: str, ours: str) -> None:
    notes: list[str] = []
    assert translate_references(text, spelling, "/p", notes.append) == ours
    assert notes == []


@pytest.mark.parametrize(
    ("spelling", "text", "ours", "words"),
    [
        ("${env:X}", "${input:my-key}", "${MY_KEY}", "set MY_KEY in the environment"),
        ("${env:X}", "${input:--}", "${INPUT}", "set INPUT in the environment"),
        ("$X", "$(pass show x)", "$(pass show x)", "output of a command"),
        ("{env:X}", "{file:~/key}", "{file:~/key}", "what a file holds"),
    ],
)
def test_what_only_the_client_knows_is_said(spelling: Variables, text: str, ours: str, words: str) -> None:
    notes: list[str] = []
    assert translate_references(text, spelling, None, notes.append) == ours
    assert words in notes[0]


def test_a_workspace_is_that_of_a_project_only() -> None:
    assert translate_references("${workspaceFolder}", "${env:X}", None, print) == "${workspaceFolder}"


@given(st.text(alphabet="ab${}:/ ()"))
@example("$${{")
def test_where_there_are_no_references_every_text_stays_what_it_is(text: str) -> None:
    ours = translate_references(text, "", None, print)
    assert expand(ours, {}) == text
    assert not has_reference(ours)
