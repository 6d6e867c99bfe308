"""How tools are placed among equals by what one has used: success first, then use, and neither without a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from actors.catalogue.snapshot import Catalogue
from actors.catalogue.tool_rules import ToolRules
from actors.principal import LOCAL
from actors.search.document import Document
from actors.search.index import Index
from supervisor.store import ToolUsage
from supervisor.usage.merits import MOST_CALLS, merit, preference
from tests.fakes.tool_catalogue import CATALOGUE, FILES

MILLION = 1_000_000
COUNTS = st.integers(0, 50).flatmap(lambda calls: st.tuples(st.just(calls), st.integers(0, calls)))


def used(server: str, tool: str, calls: int, failures: int = 0) -> dict[tuple[str, str], ToolUsage]:
    row = ToolUsage(principal=LOCAL, server=server, tool=tool, calls=calls, failures=failures, total_ms=1.0)
    return {(server, tool): row}


def test_success_goes_first_and_what_fails_behind_what_nobody_tried() -> None:
    placed = [merit(20, 0), merit(20, 4), merit(1, 0), merit(0, 0), merit(1, 1), merit(20, 18), merit(20, 20)]
    assert placed == sorted(placed, reverse=True)
    assert len(set(placed)) == len(placed)


def test_of_two_as_good_the_one_used_more_goes_first() -> None:
    assert merit(20, 10) > merit(2, 1) > merit(0, 0)


def test_the_millionth_call_says_no_more_than_the_twentieth() -> None:
    assert merit(MILLION, 0) == merit(MOST_CALLS, 0)
    assert merit(MILLION, MILLION) == merit(MOST_CALLS, MOST_CALLS)
    assert merit(MILLION, MILLION // 2) == merit(MOST_CALLS, MOST_CALLS // 2)
    assert merit(MILLION, MILLION // 2) < merit(3, 0)


@given(COUNTS)
def test_a_success_never_lowers_a_failure_never_raises(counts: tuple[int, int]) -> None:
    calls, failures = counts
    rate = merit(calls, failures) // (MOST_CALLS + 1)
    assert merit(calls + 1, failures) >= merit(calls, failures)
    assert merit(calls + 1, failures + 1) // (MOST_CALLS + 1) <= rate
    assert merit(0, 0) % (MOST_CALLS + 1) == 0


def test_who_has_used_nothing_prefers_nothing() -> None:
    assert preference(CATALOGUE, {}) is None


def test_a_tool_is_known_by_the_name_that_its_server_gives_it() -> None:
    files = FILES.with_rules(ToolRules(rename={"read_file": "open"}))
    renamed = Catalogue(entries={"files": files}, index=Index.empty())
    prefer = preference(renamed, used("files", "read_file", 5))
    assert prefer is not None
    shown = [Document(key=f"files:{name}", kind="tool", server="files", name=name) for name in ("open", "read_file")]
    assert [prefer(each) for each in shown] == [merit(5, 0), merit(0, 0)]
    prompt = Document(key="files:open", kind="prompt", server="files", name="open")
    assert prefer(prompt) == merit(0, 0)
