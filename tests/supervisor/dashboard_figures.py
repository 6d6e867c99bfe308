"""What each page of the dashboard must show of a script of calls: by place, a text, or what tells whether it is right.

All numbers are worked out here, from the calls one by one; the daemon adds them up by other ways.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from supervisor.front.ui.plots import HEIGHT, height_of
from supervisor.front.ui.words import clock, moment, number, share, size
from supervisor.usage.periods import WINDOWS, begin_of
from supervisor.usage.records import FAILED, NOT_SENT, UNKNOWN
from tests.fakes.page_figures import Element, bars_of

Row = dict[str, Any]
Expected = str | Callable[[str], bool] | list[str]
Table = dict[str, Expected]

PRECISION: Final = 0.1
"""Of a percentile: see `supervisor/usage/periods.py`."""
SPAN: Final = re.compile(r"\d+ (s|min)")
LABELS: Final = {
    *("95 % within", "95 in 100 within, last hour", "95 %", "99 %", "Waited, 95 %"),
    *(f"Calls, {window}: ok failed or not sent" for window in WINDOWS),
    *(f"How long calls took, {window}: half 95 in 100 99 in 100" for window in WINDOWS),
}
"""Names of figures with a number in them."""
UNITS: Final = {"ms": 1.0, "s": 1000.0, "min": 60_000.0}


def milliseconds_of(text: str) -> float:
    value, unit = text.split(" ")
    return float(value) * UNITS[unit]


def near(wanted: float | None) -> Callable[[str], bool]:
    """Tell whether a text is a time as near as a histogram knows it and a text shows it, or `-` where nothing was
    measured, which is sorted as 0.
    """

    def check(text: str) -> bool:
        if wanted is None:
            return text in ("-", "0")
        rounding = 0.1 if wanted < 9 else 1 if wanted < 900 else 100
        shown = milliseconds_of(text if " " in text else f"{text} ms")
        return abs(shown - max(wanted, 0.1)) <= PRECISION * wanted + rounding

    return check


def matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


def lately(text: str) -> bool:
    """Tell whether this is a moment of the last ten minutes: unix seconds, or as HTML has it."""
    if re.fullmatch(r"[\d.]+", text):
        return abs(time.time() - float(text)) < 600
    return text in {moment(time.time() - before) for before in range(600)}


def just_now(text: str) -> bool:
    """Tell whether this is the time of day of a moment of the last ten minutes."""
    return text in {clock(time.time() - before, time.time()) for before in range(600)}


def percentile(rows: Iterable[Row], of_100: int, name: str = "took_ms") -> float | None:
    """Return a percentile of what was measured: not of calls that were refused or given up."""
    measured = [row[name] for row in rows if row[name] and row["outcome"] not in ("rejected", "cancelled")]
    return sorted(measured)[math.ceil(of_100 / 100 * len(measured)) - 1] if measured else None


def failed(rows: Iterable[Row]) -> int:
    return sum(row["outcome"] in FAILED for row in rows)


def not_sent(rows: Iterable[Row]) -> int:
    return sum(row["outcome"] in NOT_SENT for row in rows)


def calls_tile(rows: Sequence[Row]) -> str:
    return f"{len(rows)} {failed(rows)} failed, {not_sent(rows)} not sent"


def grouped(rows: Iterable[Row], *names: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(" ".join(str(row[name]) or "-" for name in names), []).append(row)
    return groups


def with_prefix(prefix: str, table: Table) -> Table:
    return {f"{prefix}{place}": expected for place, expected in table.items()}


def frame(version: str, questions: int = 1) -> Table:
    """Return what every page has, also the badge with the questions that wait for whoever looks."""
    badge: Table = {"/bar/b": str(questions)} if questions else {}
    return {"/body @data-now": lately, "/footer/footer": f"· version {version}", **badge}


def windows(place: str, path: str) -> Table:
    return {f"{place}/a": [*WINDOWS], f"{place}/a @href": [f"{path}?window={each}" for each in WINDOWS]}


def call_rows(section: str, rows: Iterable[Row]) -> Table:
    """Return the figures of calls one by one, of which `rows` are those of `/api/calls`."""
    told: Table = {}
    for row in rows:
        place = f"/{section}/call-{row['number']}"
        told[f"{place}/Time"] = clock(row["time"], row["time"])
        told[f"{place}/Time @title"] = told[f"{place}/Time @datetime"] = moment(row["time"])
        told[f"{place}/Waited"] = near(row["waited_ms"] or None)
        told[f"{place}/Took"] = near(row["took_ms"] or None)
        told[f"{place}/In"] = size(row["bytes_in"])
        told[f"{place}/Out"] = size(row["bytes_out"] or None)
        if row["tool"] == UNKNOWN:
            assert row["named"] == "desk:none"
        elif row["server"]:
            told[f"{place}/Tool @href"] = f"/ui/tool?path={row['server']}%3A{row['tool']}"
        if row["error"].lstrip("-").isdigit():
            told[f"{place}/Ended"] = f"{row['outcome']} {row['error']}"
    return told


def usage_row(place: str, rows: Sequence[Row]) -> Table:
    """Return the figures of a row of a table of `/ui/usage`."""
    told: Table = {f"{place}/Calls": number(len(rows)), f"{place}/Failed": number(failed(rows))}
    told[f"{place}/Not sent"] = number(not_sent(rows))
    times = (("Half within", 50, "took_ms"), ("95 %", 95, "took_ms"), ("99 %", 99, "took_ms"))
    for column, of_100, name in (*times, ("Waited, 95 %", 95, "waited_ms")):
        told[f"{place}/{column}"] = told[f"{place}/{column} @data-sort"] = near(percentile(rows, of_100, name))
    for column, name in (("In", "bytes_in"), ("Out", "bytes_out")):
        whole = sum(row[name] for row in rows)
        told |= {f"{place}/{column}": size(whole), f"{place}/{column} @data-sort": str(whole)}
    newest = max(row["time"] for row in rows)
    told |= {f"{place}/Last": matches(SPAN.pattern), f"{place}/Last @data-sort": str(newest)}
    return told | {f"{place}/Last @title": moment(newest), f"{place}/Last @datetime": moment(newest)}


def buckets_of(rows: Iterable[Row], window: str) -> dict[int, list[Row]]:
    """Return the calls by the start of their bucket, the oldest first."""
    length = WINDOWS[window].bucket_s
    starts = sorted({int(row["time"]) // length * length for row in rows})
    return {start: [row for row in rows if start <= row["time"] < start + length] for start in starts}


def plot_scale(place: str, rows: Sequence[Row], window: str, now: float) -> Table:
    """Return the words below two plots: since when, and how many calls the highest bar has."""
    most = max(map(len, buckets_of(rows, window).values()))
    begins = {clock(begin_of(WINDOWS[window], moment), now) for moment in (now, now - 1)}
    return {f"{place}/plot/span": lambda text: text in begins | {f"highest {most}"}}


def timeline_rows(rows: Iterable[Row], window: str) -> Table:
    """Return the table below the plots."""
    told: Table = {}
    for start, inside in buckets_of(rows, window).items():
        place = f"/plots/{moment(start)}"
        told |= {f"{place}/From": moment(start), f"{place}/Calls": number(len(inside))}
        told[f"{place}/Failed"], told[f"{place}/Not sent"] = number(failed(inside)), number(not_sent(inside))
        for column, of_100 in (("Half within", 50), ("95 %", 95), ("99 %", 99)):
            told[f"{place}/{column}"] = near(percentile(inside, of_100))
    return told


def check_plots(plots: Sequence[Element], rows: Sequence[Row], window: str, now: float) -> None:
    """Hold the bars and the points of two plots against the calls. Raises AssertionError."""
    calls, times = plots
    buckets = buckets_of(rows, window)
    most = max(map(len, buckets.values()))
    bars = bars_of(calls)
    assert [bar.words for bar in bars] == [
        f"{clock(start, now)}: {len(inside)} call{'s' * (len(inside) != 1)}, {failed(inside)} failed"
        f"{f', {not_sent(inside)} not sent' if not_sent(inside) else ''}"
        for start, inside in buckets.items()
    ]
    for bar, inside in zip(bars, buckets.values(), strict=True):
        bad = failed(inside) + not_sent(inside)
        assert math.isclose(bar.bad, HEIGHT * bad / most, abs_tol=0.02)
        assert math.isclose(bar.ok, HEIGHT * (len(inside) - bad) / most, abs_tol=0.02)
    points = {name: times.all("circle", **{"class": name}) for name in ("p50", "p95", "p99")}
    for name, of_100 in (("p50", 50), ("p95", 95), ("p99", 99)):
        wanted = [height_of(at) for each in buckets.values() if (at := percentile(each, of_100)) is not None]
        shown = [float(point.attributes["cy"]) for point in points[name]]
        assert len(shown) == len(wanted)
        assert all(math.isclose(*pair, abs_tol=2.0) for pair in zip(shown, wanted, strict=True))


def audit_rows(records: Iterable[Row]) -> Table:
    """Return the table of who did what, of what `/api/audit` says."""
    told: Table = {}
    texts = {str(record[name]) for record in records for name in ("target", "detail")}
    for record in records:
        place = f"/audit/{clock(record['time'], record['time'])}"
        told[f"{place}/When"] = clock(record["time"], record["time"])
        told[f"{place}/When @title"] = told[f"{place}/When @datetime"] = moment(record["time"])
        for column in ("Target", "Detail"):
            if re.search(r"\d", record[column.lower()]):
                told[f"{place}/{column}"] = lambda text: text in texts
    return told


def server_row(name: str, status: Row, rows: Sequence[Row]) -> Table:
    """Return the figures of a row of the table of servers; `rows` are its calls."""
    place, took = f"/servers/{name}", near(percentile(rows, 95))
    return with_prefix(
        place,
        {
            "/Since": matches(SPAN.pattern),
            **dict.fromkeys(("/Since @data-sort", "/Since @title", "/Since @datetime"), lately),
            "/Tools": number(status["tools"]),
            "/Tokens": number(status["tokens"]),
            "/Calls": number(len(rows)),
            "/Failed": number(failed(rows)),
            "/95 % within": took,
            "/95 % within @data-sort": took,
            "/In flight": number(status["in_flight"]),
            "/Memory": status["memory"],
            "/Memory @data-sort": status["memory_sort"],
            "/Processor": status["processor"],
            "/Processor @data-sort": matches(r"[\d.]+"),
            "/Restarts": number(status["restarts"]),
        },
    )


def tool_row(path: str, tokens: int, rows: Sequence[Row]) -> Table:
    """Return the figures of a row of a table of tools."""
    server, _, name = path.partition(":")
    place = f"/tools/{name} {server}"
    heard = [row for row in rows if row["outcome"] != "cancelled"]
    succeeded = [row for row in heard if row["outcome"] == "ok"]
    return with_prefix(
        place,
        {
            "/Tool @href": f"/ui/tool?path={server}%3A{name}",
            "/Tokens": number(tokens),
            "/Calls": number(len(heard)),
            "/Succeeded": share(len(succeeded), len(heard)),
            "/Average": near(sum(row["took_ms"] for row in heard) / len(heard) if heard else None),
        },
    )
