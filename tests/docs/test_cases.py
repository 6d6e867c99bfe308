"""The catalogue of faults is whole: each case is tried or says why not, and its tests passed when they were run."""

from __future__ import annotations

from tests.cases import catalogue  # pytest would take the function `tests_of` for a test

CASES = {case.id: case for group in catalogue.groups() for case in group.cases}


def test_each_case_is_tried_or_says_why_not() -> None:
    tried = catalogue.tests_of()
    assert [id_ for id_, case in CASES.items() if (id_ in tried) == bool(case.why_not)] == []


def test_the_tests_name_cases_that_there_are() -> None:
    assert catalogue.tests_of().keys() - CASES.keys() == set()


def test_each_of_their_tests_was_run_and_did_not_fail() -> None:
    """If not: `python -m tests.cases --new`."""
    known = catalogue.results().outcomes
    assert {
        name
        for names in catalogue.tests_of().values()
        for name in names
        if known.get(name) not in ("passed", "skipped")
    } == set()
