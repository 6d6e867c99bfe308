"""What may only fall has not risen, and the file that says so is kept by one command."""

from __future__ import annotations

import ast
import tomllib
from typing import Any

import pytest

from tests.ratchet import figures_of_sources, foreign, held, written, wrong


def test_no_figure_of_the_sources_has_risen() -> None:
    assert wrong(figures_of_sources(), held()["figures"]) == []


def test_what_rose_or_fell_is_told_with_the_command_that_writes_it() -> None:
    assert wrong({"lines": 100, "modules": 98, "files": 3}, {"lines": 100, "modules": 100, "files": 3}) == []
    assert wrong({"lines": 101, "modules": 97, "files": 1}, {"lines": 100, "modules": 100}) == [
        "lines rose from 100 to 101: lower it, or say why: python -m tests.ratchet --write --reason WHY",
        "modules fell from 100 to 97: python -m tests.ratchet --write",
        "files rose from 0 to 1: lower it, or say why: python -m tests.ratchet --write --reason WHY",
    ]


def test_a_raise_needs_a_reason_which_stays_until_the_figure_is_down_again() -> None:
    before: dict[str, Any] = {"raised": [], "figures": {"lines": 100, "share": 2.5}}
    with pytest.raises(SystemExit, match="lines rose: say why"):
        written({"lines": 101, "share": 2.5}, before)
    raised = tomllib.loads(written({"lines": 101, "share": 2.5, "new": 1}, before, 'for "this"'))
    assert raised["figures"] == {"lines": 101, "share": 2.5, "new": 1}
    assert raised["raised"] == [{"figure": "lines", "from": 100, "to": 101, "reason": 'for "this"'}]
    fallen = tomllib.loads(written({"lines": 100, "share": 2.5, "new": 1}, raised))
    assert fallen == {"raised": [], "figures": {"lines": 100, "share": 2.5, "new": 1}}


def test_an_attribute_counts_that_is_set_of_what_a_function_has_not_made() -> None:
    code = """
def change(self, other):
    self.own = 1
    made = Struct(1)
    made.own = 1
    self.part.value += 1
    other.value = other.seen.time = 1
"""
    found = {ast.unparse(node) for node in foreign([*ast.walk(ast.parse(code))])}
    assert found == {"self.part.value", "other.value", "other.seen.time"}
