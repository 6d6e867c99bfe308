"""The cases of the catalogue of faults with the tests that try them, as the documentation lists them."""

from __future__ import annotations

from supervisor.reference.configuration import bullet
from tests.cases.catalogue import Case, Group, Results, groups, results, tests_of


def case_lists() -> dict[str, str]:
    """Return the list of each letter by the name in its markers."""
    tests, known = tests_of(), results()
    return {f"cases-{group.letter}": _list(group, tests, known) for group in groups()}


def case_counts() -> str:
    """Return how many cases each letter has, how many are tried, and when that was done last."""
    tests, known = tests_of(), results()
    rows = ["| letter | cases | tried | passed |", "| --- | --- | --- | --- |"]
    for group in groups():
        tried = [case for case in group.cases if case.id in tests]
        passed = sum(outcome(tests[case.id], known) == "passed" for case in tried)
        rows.append(f"| {group.letter}: {group.title} | {len(group.cases)} | {len(tried)} | {passed} |")
    return "\n".join((*rows, "", f"The tests of the catalogue were run on {known.on}, on {known.machine}."))


def outcome(names: list[str], known: Results) -> str:
    """Return what became of several tests together."""
    outcomes = {known.outcomes.get(name, "not run") for name in names}
    return next(word for word in ("failed", "not run", "skipped", "passed") if word in outcomes)


def _list(group: Group, tests: dict[str, list[str]], known: Results) -> str:
    return "\n".join((f"## {group.letter}: {group.title}", "", *(_item(case, tests, known) for case in group.cases)))


def _item(case: Case, tests: dict[str, list[str]], known: Results) -> str:
    names = tests.get(case.id, [])
    if not names:
        return bullet(f"**{case.id}** {case.what}. *Not tested:* {case.why_not or 'nobody has said why'}.")
    first, more = names[0].rpartition("::")[2], len(names) - 1
    also = f" and {more} more" if more else ""
    return bullet(f"**{case.id}** {case.what}. *{outcome(names, known).capitalize()}:* `{first}`{also}.")
