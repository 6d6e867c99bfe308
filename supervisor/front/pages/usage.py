"""What was called: sums by tool, server, client or user (`/api/usage`), over time, and the newest calls (`/api/calls`).

A member sees what they called, an auditor what everybody did. What was answered is nowhere here; arguments are, where
`calls_keep_arguments` says so. They are what somebody wrote: nobody but them and an admin sees them.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any, Final, Literal

import msgspec

from actors.principal import Principal
from supervisor import operations
from supervisor.events.event import MemberNumbers
from supervisor.front.pages.performing import performs
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.view import View
from supervisor.host.workbench import beside
from supervisor.identity.people import user_of
from supervisor.usage.periods import WINDOWS, By, CallSelection, begin_of, figures, rows, timeline, total
from supervisor.usage.records import FAILED, NOT_SENT, CallOutcome, CallRecord

_MAX_ROWS: Final = 1000
_MAX_CALLS: Final = 500
"""Of one page."""

WindowName = Literal["1h", "24h", "7d", "30d"]
OutcomeGroup = Literal["failed", "not_sent"]
_GROUPS: Final[dict[str, frozenset[CallOutcome]]] = {"failed": FAILED, "not_sent": NOT_SENT}


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which calls: of a `window` until now, of a `server`, `tool`, `client` or `user`, or of the `meta_tools`, too."""

    window: WindowName = "1h"
    by: By = "tool"
    server: str | None = None
    tool: str | None = None
    client: str | None = None
    user: str | None = None
    meta_tools: bool = False


class CallsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which calls: `outcome` may be given several times, or is a group. `before` is the `next` of the page before."""

    server: str | None = None
    tool: str | None = None
    client: str | None = None
    user: str | None = None
    outcome: tuple[CallOutcome | OutcomeGroup, ...] = ()
    slower_than_ms: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    meta_tools: bool = False
    before: Annotated[int, msgspec.Meta(ge=1)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MAX_CALLS)] = 50


@performs(operations.USAGE)
async def usage(view: View, query: UsageQuery) -> Any:
    """Show what was called, a row for each tool (or server, client, user), most calls first, and the sum.

    `not_sent` were [never sent](metrics.md#calls-that-are-never-sent). Times are percentiles in milliseconds, null
    where nothing was measured, and exact to a tenth. Auditors see in `warm_ups` what became of servers that were
    started ahead, since the daemon started.
    """
    window, now, which = WINDOWS[query.window], view.clock(), _selection(query)
    begin = begin_of(window, now)
    periods = await view.history.periods(window.level, begin)
    every, whole = await beside(lambda: (rows(periods, query.by, which), figures(total(periods, which))))
    told = {"window": query.window, "from": begin, "to": now, "by": query.by, "total": whole}
    ahead = {"warm_ups": view.meters.warm_ups()} if REQUESTER.get().person.may("auditor") else {}
    return {**told, "rows": every[:_MAX_ROWS], "left_out": max(0, len(every) - _MAX_ROWS), **ahead}


@performs(operations.USAGE_TIMELINE)
async def usage_timeline(view: View, query: UsageQuery) -> Any:
    """Show the same over time, in buckets of `bucket_s` seconds, the oldest first; the newest is not over yet."""
    window, now, which = WINDOWS[query.window], view.clock(), _selection(query)
    begin = begin_of(window, now)
    periods = await view.history.periods(window.level, begin)
    buckets = await beside(lambda: timeline(periods, window, begin, which))
    told = {"window": query.window, "from": begin, "to": now, "bucket_s": window.bucket_s, "partial": True}
    return {**told, "buckets": buckets}


@performs(operations.CALLS)
async def calls(view: View, query: CallsQuery) -> Any:
    """Show the newest calls one by one, and the `next` to go on before; `arguments` are null if not kept, or not
    yours to see. `outcome` may be `failed` or `not_sent`. For a member a `number` is a name, in no order.
    """
    which, numbers = _selection(query), MemberNumbers(view.key)
    own = which.principal
    before = None if query.before is None else numbers.read(query.before, own)
    asked, every, newest = view.history.calls(before), view.history.calls(), view.history.newest

    def choose() -> tuple[list[tuple[int, CallRecord]], int]:
        chosen = [*islice((each for each in asked if _has(query, which, each[1])), query.limit + 1)]
        return chosen, newest if own is None else next((n for n, record in every if record.principal == own), 0)

    chosen, newest = await beside(choose)
    listed = [
        {**_call_row(numbers.show(number, own), record), "arguments": _arguments(view, number, record)}
        for number, record in chosen[: query.limit]
    ]
    following = listed[-1]["number"] if len(chosen) > query.limit else None
    shown = numbers.show(newest, own) if newest else 0
    return {"calls": listed, "next": following, "newest": shown}


def _arguments(view: View, number: int, record: CallRecord) -> msgspec.Raw | None:
    kept = view.arguments(number) if _may_read(record) else None
    return None if kept is None else msgspec.Raw(kept.encode())


def _selection(wanted: UsageQuery | CallsQuery) -> CallSelection:
    """Return which calls somebody may see of those that are wanted."""
    own: Principal | None = None if (asks := REQUESTER.get()).person.may("auditor") else asks.principal
    return CallSelection(
        principal=own,
        user=wanted.user,
        client=wanted.client,
        server=wanted.server,
        tool=wanted.tool,
        meta_tools=wanted.meta_tools,
    )


def _may_read(record: CallRecord) -> bool:
    """Say whether somebody may see the arguments of a call."""
    return (asks := REQUESTER.get()).person.may("admin") or record.principal == asks.principal


def _has(wanted: CallsQuery, which: CallSelection, record: CallRecord) -> bool:
    if record.took_ms + record.waited_ms < wanted.slower_than_ms:
        return False
    if wanted.outcome and not any(record.outcome in _GROUPS.get(each, (each,)) for each in wanted.outcome):
        return False
    return which.has((record.principal, record.client, record.server, record.tool))


def _call_row(number: int, record: CallRecord) -> dict[str, Any]:
    row = {name: value for name, value in msgspec.structs.asdict(record).items() if name != "principal"}
    return {"number": number, "user": user_of(record.principal), **row}
