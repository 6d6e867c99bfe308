"""What a run of chaos found, as a text. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.chaos.history import History
from tests.chaos.verdicts import p99

WITNESSES = 3
WIDTH = 600


def progress(history: History, at_s: float) -> str:
    """Return a line about how it is so far."""
    hows = Counter(each.how or "open" for each in history.requests)
    told = ", ".join(f"{count} {how}" for how, count in hows.most_common())
    newest = history.samples[-1] if history.samples else None
    figures = (
        f"{newest.rss_mib:.0f} MiB, {newest.descriptors} descriptors, {newest.tasks} tasks" if newest else "no figures"
    )
    return f"{at_s:5.0f} s: {len(history.requests)} calls ({told}); {sum(history.done.values())} faults; {figures}"


def report(history: History, verdicts: Mapping[str, Sequence[str]], replay: str) -> str:
    """Return the tables of a whole run, and how to run it again."""
    lines = ["", "Faults:"]
    lines += [f"  {count:6} {name}" for name, count in sorted(history.done.items())]
    ends = Counter(" ".join(filter(None, (each.how or "open", each.type, each.outcome))) for each in history.requests)
    lines += ["", f"{len(history.requests)} calls, {sum(history.ran.values())} runs in the ledger, by how they ended:"]
    lines += [f"  {count:6} {how}" for how, count in ends.most_common()]
    lines += ["", *_times(history), "", "Invariants:"]
    for name, witnesses in verdicts.items():
        lines.append(f"  {'ok      ' if not witnesses else 'VIOLATED'} {name}")
        lines += [f"             {witness[:WIDTH]}" for witness in witnesses[:WITNESSES]]
        if len(witnesses) > WITNESSES:
            lines.append(f"             and {len(witnesses) - WITNESSES} more")
    return "\n".join([*lines, "", f"Again: {replay}"])


def _times(history: History) -> list[str]:
    of_healthy = [each for each in history.requests if each.server == history.healthy and each.how == "result"]
    before = p99(each for each in of_healthy if each.asked_s < history.quiet_s)
    since = p99(each for each in of_healthy if each.asked_s >= history.quiet_s)
    took = sorted(change.took_s for change in history.changes if change.took_s is not None)
    lines = [f"Healthy server, p99: {before * 1000:.0f} ms without faults, {since * 1000:.0f} ms with all of them"]
    if took:
        lines.append(f"{len(took)} changes, seen after {took[len(took) // 2]:.2f} s (median), {took[-1]:.2f} s (most)")
    lines += [
        f"Without a daemon that could answer for {each.to_s - each.from_s:.1f} s: {each.what}"
        for each in history.of_daemon("kill daemon", "stop daemon")
    ]
    if history.samples:
        first, last = history.samples[0], history.samples[-1]
        lines.append(
            f"Daemon, first and last: {first.rss_mib:.0f} and {last.rss_mib:.0f} MiB, "
            f"{first.descriptors} and {last.descriptors} descriptors, {first.threads} and {last.threads} threads, "
            f"{first.tasks} and {last.tasks} tasks; {len(history.lives)} lives"
        )
    return lines
