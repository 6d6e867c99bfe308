"""For whom a server runs: its launches, values that are missing, and what of that whoever asks for a page may see."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from actors.installation import DISABLED, PER_USER, shown
from actors.launch import is_own, server_of
from supervisor.front.pages.rights import REQUESTER
from supervisor.front.ui.frame import Frame
from supervisor.host.loop.workbench import beside
from supervisor.servers.deployment import Deployment
from supervisor.values.holders import MAX_USERS, ValueHolders, known_users, value_holders

OFFERED: Final = {
    DISABLED: ("enable",),
    PER_USER: ("disable",),
    "awaiting_user_config": ("disable",),
    "ready": ("restart", "sleep", "refresh", "disable"),
    "dormant": ("wake", "refresh", "disable"),
    "stopped": ("wake", "disable"),
}
"""Which orders make sense, by how a server is and by what its process does; for any other: restart and disable."""
Row = dict[str, Any]


def orders_of(row: Row) -> list[str]:
    """Return the orders that make sense: what waits for values cannot be woken, and one launch not be switched off."""
    if row.get("left_out"):  # until its entry is mended
        return []
    known = OFFERED.get(shown(row)) or OFFERED.get(row["state"], ("restart", "disable"))
    return [name for name in known if not (is_own(row["server"]) and name in ("enable", "disable"))]


def launch_of_requester(server: str) -> str:
    """Return the launch of a server that is started for whoever asks and not for all; "" if there is none."""
    return next((each.name for each in REQUESTER.get().person.rights.launches if each.server == server), "")


async def tell_lacking(frame: Frame, rows: list[Row]) -> None:
    """Add to servers that run for each person by their values who has yet to give one, for an admin to see.

    `lacking` has that in words, `holders` the `ValueHolders` of each value that is missing. `left_out` says of those
    whose entry has faults that they cannot be ordered anything.
    """
    faulty = {each.server for each in frame.view.deployment.value.problems}
    for row in rows:
        row["left_out"] = row["server"] in faulty
    waiting = [row for row in rows if row.get("awaits")]
    if waiting and frame.may_order:
        deployment = frame.view.deployment.value
        await beside(lambda: _add_lacking(deployment, waiting))


def _add_lacking(deployment: Deployment, waiting: list[Row]) -> None:
    by_server: defaultdict[str, list[ValueHolders]] = defaultdict(list)
    for each in value_holders(deployment, known_users(deployment)[:MAX_USERS]):
        if each.missing:
            by_server[each.server].append(each)
    for row in waiting:
        row["holders"] = by_server[row["server"]]
        row["lacking"] = [f"{each.name} of {who.words}" for each in row["holders"] for who in each.missing]


async def rows_of_launches(frame: Frame, row: Row) -> list[Row]:
    """Return the rows of launches of a server, by the names of whoever has them; one that sleeps may have none."""
    if not row.get("launches"):
        return []
    rows = (await frame.ask("status"))["servers"]
    of_it = [each for each in rows if each.get("users") and server_of(each["server"]) == row["server"]]
    return sorted(of_it, key=lambda each: each["users"])


async def own_values(frame: Frame, row: Row) -> list[Row]:
    """Return the values of a server that whoever asks has yet to give; to an admin `holders` says all of them."""
    if not row.get("awaits") or frame.may_approve or not REQUESTER.get().person.user:
        return []
    values = (await frame.ask("values"))["values"]
    return [each for each in values if each["missing"] and (each["server"], each["tier"]) == (row["server"], "user")]


async def tools_of(frame: Frame, server: str) -> Any:
    """Return what `/api/tools` has of a server, or of a launch that whoever asks has; no tools of another's."""
    name = server_of(server)
    if is_own(server) and server != launch_of_requester(name):
        return {"tools": []}
    return await frame.ask("tools", {"servers": name, "limit": "500", "include_unavailable": "true"})
