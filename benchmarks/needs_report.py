"""What `benchmarks.needs` found, in shares of needs: by kind of query, by the source of arguments, and why not."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from benchmarks.model import ROWS_LOOKED_AT, Need, Outcome

Judge = Callable[[Need], bool]
JUDGES: dict[str, Judge] = {
    "one call": lambda need: need.met == 1,
    "two calls": lambda need: need.met > 0,
    "by the first row": lambda need: need.met == 1 and need.place == 1,
    "by a row that fits": lambda need: need.met == 1 and need.fits,
    f"in {ROWS_LOOKED_AT} rows": lambda need: 0 < need.place <= ROWS_LOOKED_AT,
}


def share(needs: Sequence[Need], judge: Judge) -> float:
    """Return the share of needs that a judge says yes to, in per cent."""
    return 100 * sum(map(judge, needs)) / len(needs) if needs else 0.0


def report(outcomes: Sequence[Outcome]) -> None:
    """Print the figures."""
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        kinds[one.kind if one.needs else f"{one.kind} (no tool)"].append(one)
    for kind, some in sorted(kinds.items()):
        _print_kind(kind, some)
    _print_kind("all", outcomes)
    needs = [need for one in outcomes for need in one.needs]
    _print_sources(needs)
    _print_reasons(needs)
    idle = [one.nothing for one in outcomes if not one.needs]
    met = [need.met == 1 for need in needs]
    if idle:
        print(f"queries without a tool, nothing called: {_counted(idle)}")
        print(f"these and the needs together, right: {_counted([*idle, *met])}")
    print(f"needs met after one discover and one call: {_counted(met)}")


def _counted(right: Sequence[bool]) -> str:
    share = f"{100 * sum(right) / len(right):.1f}" if right else "-"
    return f"{share} % ({sum(right)} of {len(right)})"


def _print_kind(kind: str, outcomes: Sequence[Outcome]) -> None:
    """Print the shares of one kind, and the calls and tokens of a need, its part of the discover included."""
    needs = [need for one in outcomes for need in one.needs]
    each = len(needs) + sum(not one.needs for one in outcomes)
    costs = f"calls {_mean(outcomes, each, lambda one: one.calls):.2f}  " if each else ""
    costs += f"tokens {_mean(outcomes, each, lambda one: one.tokens):.0f}" if each else ""
    if needs:
        shares = "  ".join(f"{name} {share(needs, judge):5.1f}" for name, judge in JUDGES.items())
    else:
        shares = f"nothing called {_counted([one.nothing for one in outcomes])}"
    print(f"{kind:20} n={each:<4} {shares}  {costs}")


def _mean(outcomes: Iterable[Outcome], each: int, of: Callable[[Outcome], int]) -> float:
    return sum(map(of, outcomes)) / each


def _print_sources(needs: Iterable[Need]) -> None:
    """Print how many first calls were right, by what their arguments were made from."""
    calls: dict[str, list[bool]] = defaultdict(list)
    for need in needs:
        if need.source is not None:
            calls[need.source].append(need.met == 1)
    for source, right in sorted(calls.items()):
        print(f"first calls with arguments made from {source}: {len(right)}, valid {_counted(right)}")


def _print_reasons(needs: Sequence[Need]) -> None:
    """Print why first calls were not right, the most frequent reason first."""
    reasons = Counter(need.why for need in needs if need.met != 1)
    for why, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        later = sum(need.met > 1 for need in needs if need.why == why)
        print(f"not met: {count:3} {why}{f' (met by the second call: {later})' if later else ''}")
