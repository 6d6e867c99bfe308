"""What came of the same faults here and at other proxies, as the documentation shows it."""

from __future__ import annotations

from collections import defaultdict

from benchmarks.faults.clients import CLIENTS, REQUESTS
from benchmarks.faults.ends import GROUP as PROCESSES
from benchmarks.faults.kept import Kept, kept
from benchmarks.faults.verdict import score
from benchmarks.faults.wires import HTTP, LINES
from supervisor.reference.configuration import bullet

COLUMNS = {"lines": LINES, "HTTP": HTTP, "ends": PROCESSES, "clients": CLIENTS, "requests": REQUESTS}


def fault_table() -> str:
    """Return what each passed, a line a group, and an item for each subject with what was seen of what was not."""
    runs = kept().values()
    cells = {run.subject: dict(zip(COLUMNS, _cells(run), strict=True)) for run in runs}
    rows = [bullet(f"**{name}**: {', '.join(f'{who} {of[name]}' for who, of in cells.items())}.") for name in COLUMNS]
    return "\n".join((*rows, "", *map(_item, runs)))


def _cells(run: Kept) -> list[str]:
    return [score(each for each in run.trials if each.group == group) for group in COLUMNS.values()]


def _item(run: Kept) -> str:
    head = bullet(f"**{run.subject}** {run.version}, on {run.on}: `{run.how}`")
    seen: dict[str, list[str]] = defaultdict(list)
    for each in run.trials:
        if each.says:
            seen["*Not offered*: " * (each.mark == "not offered") + each.says].append(each.name)
    return "\n".join((head, *(f"  {line}" for says, names in seen.items() for line in _lines(says, names))))


def _lines(says: str, names: list[str]) -> list[str]:
    return bullet(f"{says}: {', '.join(names)}.").splitlines()
