"""The official conformance suite, directly and through a door. `python -m tests.conformance` shows it as a table."""

from __future__ import annotations

import pytest

from tests.conformance.comparison import differences
from tests.conformance.runner import Runner
from tests.conformance.stage import Transport
from tests.conformance.suites import REQUIREMENTS, SUITES
from tests.e2e import environments

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def runner() -> Runner:
    if environments.node() is None:
        pytest.skip("no Node.js 20 or later")
    return Runner(environments.conformance())


def test_a_legacy_client_is_asked_by_a_server_that_speaks_both_eras(runner: Runner) -> None:
    asking = ("tools-call-sampling", "tools-call-elicitation")
    ((_, rows),) = runner.compare(SUITES["2025-11-25"], ["http"], asking, dual=True)
    assert [(row.scenario, row.passes_directly, row.passes_through) for row in rows] == [
        (scenario, True, True) for scenario in asking
    ], "\n".join(differences(rows))


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_what_passes_directly_passes_through_a_balancer_and_three_nodes(runner: Runner, name: str) -> None:
    """Each request goes to another node than the one before; the server runs at one of them."""
    ((_, rows),) = runner.before_nodes(3).compare(SUITES[name], ["stdio"])
    assert len([row for row in rows if row.is_scored]) >= 30
    assert [row.scenario for row in rows if row.is_worse and not row.reason] == [], "\n".join(differences(rows))


@pytest.mark.parametrize("name", REQUIREMENTS)
@pytest.mark.parametrize(
    ("transport", "across"),
    [
        pytest.param("stdio", False, id="stdio"),
        pytest.param("http", True, id="across-eras"),
    ],
)
def test_what_passes_directly_passes_through_the_door(
    runner: Runner, name: str, transport: Transport, across: bool
) -> None:
    """The short form. Over HTTP it is the same in one era; across eras over stdio it takes a minute, as scenarios whose
    questions the suite leaves unanswered hold up others, and those want fresh daemons.
    """
    ((_, rows),) = runner.compare(SUITES[name], [transport], across=across)
    scored = [row for row in rows if row.is_scored]
    assert len(scored) >= 30
    assert [row.scenario for row in scored if not row.passes_directly] == []
    assert [row.scenario for row in rows if row.is_worse and not row.reason] == [], "\n".join(differences(rows))
    assert [row.scenario for row in scored if row.reason and row.passes_through] == [], "off the list of known.py"
