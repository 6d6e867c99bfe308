"""What is told of one server, and of all together, in `/api/status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from actors.catalogue.offer import LISTS
from actors.catalogue.snapshot import Catalogue
from actors.installation import InstallationStatus, installation_status
from actors.launch import is_own, server_of
from actors.messages import ServerStatus
from actors.transport.stdio.command import ProcessLimits
from actors.transport.stdio.resources.allotment import ProcessFigures
from actors.transport.stdio.resources.room import Room
from supervisor.config import ServerConfig
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.names import LaunchFacts
from supervisor.service.doors.addresses import path_of
from supervisor.tokens.counting import savings

OF_LISTS = LISTS
"""What is not summed of launches that not all share: they offer what others do, too."""
SUMMED = (*OF_LISTS, "calls", "failures", "in_flight", "waiting", "restarts")
MAX_TOOL_NAMES = 500
"""Of a launch, on its page."""
MOMENTS = ("since", "used_at", "last_error_at", "next_start", "retry_at", "asked_since", "last_sign_at")
NO_FIGURES = {"memory_bytes": None, "cpu_s": None, "cpu_percent": None, "processes": None}
"""Of a server without a process here."""


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """The present moment: `unix` time in seconds, and in seconds of the trio clock.

    What happened is known as a moment of the latter. On the clock of the wall it is as long ago as it is now, wherever
    that was set to in between.
    """

    unix: float
    elapsed: float

    def unix_of(self, moment: float) -> float:
        return self.unix - (self.elapsed - moment)


def holders_row(launches: LaunchFacts, launch: str) -> dict[str, Any]:
    """Return who has a launch that not all share, and of a server how many such launches people have."""
    if is_own(launch):
        return {"users": launches.people_of(launch)}
    count = launches.count_of(launch)
    return {"launches": count} if count else {}


def sandbox_row(entries: Mapping[str, ServerConfig], launch: str) -> dict[str, Any]:
    """Return what the sandbox of a server denies in words, null for one that runs in none."""
    config = entries.get(server_of(launch))
    sandbox = config.sandbox.sandbox if config is not None else None
    return {"sandbox": None if config is None or sandbox is None else sandbox.denial(config.cwd or "")}


def tool_names_row(catalogue: Catalogue, launch: str) -> dict[str, Any]:
    """Return the names of the first 500 tools of a launch that not all share: `/api/tools` has them for its users."""
    entry = catalogue.own.get(launch)
    return {} if entry is None else {"tool_names": [tool.name for tool in entry.offer.tools[:MAX_TOOL_NAMES]]}


def word_of(status: ServerStatus, catalogue: Catalogue) -> InstallationStatus | None:
    """Return what the users of a launch may expect of it; None where it is switched off."""
    entry = catalogue.of_launch(status.server)
    return installation_status(status, listed=entry is not None and entry.available)


def status_row(status: ServerStatus, catalogue: Catalogue, now: Now) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(status)
    row["status"] = word_of(status, catalogue)
    del row["down"]
    for name in MOMENTS:
        if row[name] is not None:
            row[name] = now.unix_of(row[name])
    for breaker in row["breakers"]:
        breaker["until"] = now.unix_of(breaker["until"])
    for instance in row["instances"]:
        instance["since"] = now.unix_of(instance["since"])
    if status.discovery.last_at is not None:
        row["discovery"]["last_at"] = now.unix_of(status.discovery.last_at)
    return row


def figures_row(row: Mapping[str, Any], figures: Mapping[int, ProcessFigures]) -> dict[str, Any]:
    """Return memory and processor time of a server, null where it has no process here or nobody can tell.

    `row` is that of `status_row`. Of several instances it is the sum, and each has its own.
    """
    instances = [{**each, **_figures_of([each["pid"]], figures)} for each in row["instances"]]
    pids = [each["pid"] for each in instances] or [row["pid"]]
    return {**_figures_of(pids, figures), "instances": instances}


def _figures_of(pids: Iterable[int | None], figures: Mapping[int, ProcessFigures]) -> dict[str, Any]:
    known = [figures[pid] for pid in pids if pid is not None and pid in figures]
    if not known:
        return NO_FIGURES
    return {name: sum(getattr(each, name) for each in known) for name in NO_FIGURES}


def limits_row(deployment: Deployment, launch: str, room: Room) -> dict[str, Any]:
    """Return how each limit of a server is kept (`kernel`, `watched`, `not enforced`), by its name; nothing if it has
    none.
    """
    config = deployment.entries.get(server_of(launch))
    if config is None or config.kind != "stdio":
        return {}
    allotment = msgspec.convert(config, ProcessLimits, from_attributes=True).allotment(launch)
    kept = allotment.enforcement(room.groups.controllers)
    return {"limits": kept} if kept else {}


def row_of(status: ServerStatus, catalogue: Catalogue, now: Now, exposed_tokens: int) -> dict[str, Any]:
    """Return one server's row: `since` is unix time, `since_s` the age of the state in seconds.

    `status` is what its users may expect, `path` that of its own door. `tokens` are what its tools would cost if a
    model saw them: all of that is saved. `tokens_share_percent` is its part of what all servers would cost.
    `hidden_tools`: the configuration hides them. `unapproved_tools` wait for approval,
    `held_tools` of them are not seen meanwhile. A launch that not all share has a row of its own.
    """
    row = status_row(status, catalogue, now)
    row.pop("stderr")
    row["since_s"] = round(max(0.0, now.elapsed - status.since), 1)
    row["path"] = path_of(server_of(status.server))
    entry = catalogue.of_launch(status.server)
    if entry is not None:
        offer = entry.offer
        row |= {name: len(getattr(offer, name)) for name in OF_LISTS}
        tokens = sum(offer.token_counts.values())
        row["tokens"] = tokens if offer.token_counts else None
        row["tokens_exact"] = offer.tokens_exact
        share = exposed_tokens and not is_own(status.server)
        row["tokens_share_percent"] = round(tokens / exposed_tokens * 100, 2) if share else 0.0
        row["hidden_tools"] = len(entry.hidden_tools)
        row["held_tools"] = len(entry.standing.hold)
        row["unapproved_tools"] = len(entry.standing.waiting)
        row["problems"] = list(offer.problems)
    return row


def token_savings(catalogue: Catalogue) -> dict[str, Any]:
    """Return the numbers behind "tokens saved"; `counted` says whether every tool has a count."""
    offers = [entry.offer for entry in catalogue.entries.values() if entry.offer.tools]
    exposed = sum(sum(offer.token_counts.values()) for offer in offers)
    counted = all(len(offer.token_counts) >= len(offer.tools) for offer in offers)
    exact = counted and all(offer.tokens_exact for offer in offers)
    return {**savings(exposed, exact=exact), "counted": counted}
