from __future__ import annotations

import pytest

from tests.conformance.comparison import compared, differences, table
from tests.conformance.known import reasons
from tests.conformance.scores import Scenarios, Score, listed, scored
from tests.conformance.stage import Doors, Transport
from tests.conformance.suites import Era

PASS = Score(succeeded=2)
FAIL = Score(succeeded=1, failed=1, wrong=("check: no answer",))
WARN = Score(succeeded=1, warned=1, wrong=("check: late",))
LISTING = """Required for 2025-11-25 (48 scenarios, frozen; run at the 2025-11-25 wire):

Server scenarios (test against a server):
  - ping
  - tools-list [2025-06-18,2025-11-25]

Client scenarios (test against a client):
  - initialize

Run and reported, but never scored:
  extension (6):
    - auth/dpop [client]
  pending (2):
    - server-sse-polling [server]
"""


def test_the_listing_of_a_suite_is_read() -> None:
    assert listed(LISTING) == Scenarios(("ping", "tools-list"), ("server-sse-polling",))
    assert listed("Server scenarios (test against a server):\n  - ping [2025-11-25]\n") == Scenarios(("ping",))


def test_checks_are_counted_by_their_outcome() -> None:
    checks = (
        b'[{"id": "a", "status": "SUCCESS"}, {"id": "b", "status": "FAILURE", "errorMessage": "why", "details": 1},'
        b' {"id": "c", "status": "WARNING"}, {"id": "d", "status": "SKIPPED"}, {"id": "e", "status": "INFO"}]'
    )
    assert scored(checks) == Score(1, 1, 1, 1, ("b: why", "c: "))
    assert str(scored(checks)) == "1/2, 1 warned, 1 skipped"


@pytest.mark.parametrize(
    ("direct", "through", "reason", "is_wrong", "remark"),
    [
        (PASS, PASS, "", False, ""),
        (PASS, FAIL, "", True, "**worse**"),
        (PASS, None, "", True, "**worse**"),
        (PASS, FAIL, "cannot be", False, "**worse**: cannot be"),
        (PASS, PASS, "cannot be", False, "listed as different, and passes"),
        (PASS, WARN, "", False, "not the same"),
        (FAIL, FAIL, "", False, ""),
        (FAIL, PASS, "", False, "better"),
        (None, FAIL, "", False, "not the same"),
    ],
)
def test_only_what_passes_directly_and_fails_through_without_a_reason_is_wrong(
    direct: Score | None, through: Score | None, reason: str, is_wrong: bool, remark: str
) -> None:
    directly, passed = ({} if score is None else {"ping": score} for score in (direct, through))
    (row,) = compared(Scenarios(("ping",)), directly, passed, {"ping": reason})
    assert (row.is_wrong, row.remark) == (is_wrong, remark)


def test_what_is_not_scored_is_never_wrong() -> None:
    (row,) = compared(Scenarios((), ("ping",)), {"ping": PASS}, {"ping": FAIL}, {})
    assert (row.is_wrong, row.remark) == (False, "**worse**")


def test_the_table_has_totals_of_both_kinds() -> None:
    rows = compared(Scenarios(("ping", "caching"), ("x",)), {"ping": PASS, "caching": PASS}, {"ping": FAIL}, {})
    assert list(table(rows))[2:] == [
        "| ping | pass 2/2 | FAIL 1/2 | **worse** |",
        "| caching | pass 2/2 | not run | **worse** |",
        "| x (not scored) | not run | not run |  |",
        "| **scored** | **2 of 2** | **0 of 2** | |",
        "| **not scored** | **0 of 1** | **0 of 1** | |",
    ]


def test_the_table_says_where_a_fresh_daemon_was_needed() -> None:
    both = {"ping": PASS, "caching": PASS}
    rows = compared(Scenarios(("ping", "caching")), both, both | {"caching": WARN}, {}, ["caching"])
    assert list(table(rows))[2:4] == [
        "| ping | pass 2/2 | pass 2/2 |  |",
        "| caching | pass 2/2 | pass 1/1, 1 warned | not the same; a fresh daemon: the scenario before left questions"
        " unanswered |",
    ]


@pytest.mark.parametrize(
    ("suite", "behind", "transport", "doors", "number"),
    [
        ("2026-07-28", "legacy", "stdio", "one", 10),
        ("2026-07-28", "legacy", "stdio", "as needed", 1),
        ("2026-07-28", "legacy", "http", "one", 1),
        ("2026-07-28", "modern", "stdio", "one", 0),
        ("2025-11-25", "modern", "stdio", "one", 0),
    ],
)
def test_only_with_one_daemon_before_a_legacy_pipe_do_scenarios_wait_for_others(
    suite: str, behind: Era, transport: Transport, doors: Doors, number: int
) -> None:
    assert len(reasons(suite, behind, transport, doors)) == number


def test_what_is_wrong_on_both_sides_is_no_difference() -> None:
    rows = compared(Scenarios(("a", "b", "c")), {"a": FAIL, "b": PASS, "c": FAIL}, {"a": FAIL, "b": WARN}, {})
    assert list(differences(rows)) == ["b: check: late"]
