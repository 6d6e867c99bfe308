"""What needs somebody, and what they can do about it: the first thing that a page says. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from actors.installation import shown
from supervisor.front.ui.words import MAX_NAME, MAX_NAMES, WANTS_YOU, is_lacking, kind_of, text

Row = Mapping[str, Any]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """`what` is wrong with `who`: a server of `users` alone, if there are any. `orders` can be given for that server;
    `link` leads where more can be done.
    """

    mark: str
    kind: str
    who: str
    what: str
    server: str = ""
    users: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    link: str = ""
    do: str = ""
    """What the link is called."""


def notices(status: Mapping[str, Any], unapproved: Sequence[Row] = ()) -> list[Notice]:
    """Return what needs somebody, of what `/api/status` says, and `/api/trust` of tools; what is worst comes first."""
    of_servers = (_of_server(row, unapproved) for row in status["servers"])
    needs = [*_of_daemon(status), *(each for each in of_servers if each is not None)]
    return sorted(needs, key=lambda each: ("failed", "wanting").index(each.kind))


def sentence(status: Mapping[str, Any], needs: Sequence[Notice]) -> str:
    """Return how everything is, in one sentence."""
    servers = status["totals"]["servers"]
    if not servers:
        return "No servers yet."
    troubled = len({each.server for each in needs if each.server})
    if troubled:
        return f"{troubled} of {servers} servers need{'s' if troubled == 1 else ''} you."
    usable = f"All {servers} servers are usable" if servers > 1 else "The one server is usable"
    return f"{usable}, but the daemon needs you." if needs else f"{usable}."


def _of_server(row: Row, unapproved: Sequence[Row] = ()) -> Notice | None:
    """Return what a server needs; None if that is nothing."""
    need = _need_of(row, unapproved)
    return None if need is None else replace(need, users=tuple(row.get("users") or ()))


def _need_of(row: Row, unapproved: Sequence[Row]) -> Notice | None:
    name, word = row["server"], shown(row)
    if word == "requires_reauth":
        return Notice(mark=WANTS_YOU, kind="wanting", who=name, what="wants a login", server=name, orders=("login",))
    if is_lacking(dict(row)):
        lacking = row.get("lacking") or []
        more = f" and {len(lacking) - MAX_NAMES} more" if len(lacking) > MAX_NAMES else ""
        what = f"values are missing: {', '.join(lacking[:MAX_NAMES])}{more}" if lacking else row.get("reason")
        link, do = ("/ui/people", "Give") if lacking else ("", "")
        told = text(what or "waits for values")
        return Notice(mark=WANTS_YOU, kind="wanting", who=name, what=told, server=name, link=link, do=do)
    if kind_of(dict(row)) == "failed":
        orders = () if row.get("left_out") else ("restart",)
        why = text(row.get("last_error") or row.get("reason") or "it failed")
        return Notice(mark="✕", kind="failed", who=name, what=why, server=name, orders=orders)
    if waiting := row.get("unapproved_tools"):
        so = "held" if row.get("held_tools") else "usable all the same"
        of = "tools not approved, which are" if waiting > 1 else "tool not approved, which is"
        what = f"{waiting} {of} {so}"
        if named := [_tool(each) for each in unapproved if each["server"] == name][:MAX_NAMES]:
            what += f": {'; '.join(named)}{f' and {waiting - len(named)} more' if waiting > len(named) else ''}"
        return Notice(mark=WANTS_YOU, kind="wanting", who=name, what=what, server=name, link="/ui/changes", do="Look")
    return None


def _tool(row: Row) -> str:
    """Return the name of a tool that waits for approval, and the first of what is suspicious about it."""
    return text(f"{row['tool'][:MAX_NAME]} ({row['findings'][0]})" if row["findings"] else row["tool"][:MAX_NAME])


def _of_daemon(status: Mapping[str, Any]) -> Iterator[Notice]:
    configuration = status["configuration"]
    if refused := configuration.get("refused"):
        what = f"its configuration is refused, all runs as before: {text(refused[0])}"
        yield Notice(mark="✕", kind="failed", who="daemon", what=what)
    for each in status["degraded"]:
        what = text(f"{each['what']}: {each['why']}")
        yield Notice(mark="✕", kind="failed", who="daemon", what=what)
    if count := status["questions"]:
        what = f"{count} question{'s wait' if count > 1 else ' waits'} for an answer"
        yield Notice(mark=WANTS_YOU, kind="wanting", who="questions", what=what, link="/questions", do="Answer")
