"""The table of operations is whole: what is written is in it, and a command that it names is one."""

from __future__ import annotations

from itertools import chain

from docs.commands import documented
from supervisor import operations
from supervisor.cli import GROUPS
from supervisor.operations import LIVE, SUBJECTS, Operation

PERFORMED = [*chain.from_iterable(SUBJECTS.values())]


def test_an_operation_has_a_subject_or_lasts() -> None:
    written = [each for each in vars(operations).values() if isinstance(each, Operation)]
    assert [each.route for each in written if each not in PERFORMED and each not in LIVE] == []


def test_the_command_that_asks_for_an_operation_is_one() -> None:
    commands = {name for group in GROUPS for name, _ in documented(group)}
    assert {each.command for each in (*PERFORMED, *LIVE)} - {""} <= commands
