"""Health, readiness and status: how the daemon and its servers are doing (`/healthz`, `/readyz`, `/api/status`).

Nothing here carries a payload of a call, a value of the configuration's `env` or `headers`, or text of an exception.
`/api/status/debug` has all that is known of servers, for finding out why. What takes long is made a server at a time,
with turns for others in between, or beside the loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio
from quart import Response, abort

from actors.catalogue.metadata import Metadata
from actors.catalogue.offer import LISTS
from actors.catalogue.snapshot import Catalogue
from actors.installation import DISABLED, DOWN, InstallationStatus, installation_status
from actors.launch import is_own, server_of
from actors.life.states import State
from actors.messages import ServerStatus
from actors.protocol.listing import Readings
from actors.transport.stdio.command import ProcessLimits
from actors.transport.stdio.resources.allotment import ProcessFigures
from actors.transport.stdio.resources.room import Room
from supervisor import operations
from supervisor.config import ServerConfig
from supervisor.fleet.peers import Peers
from supervisor.front.pages.app import json_response
from supervisor.front.pages.performing import SharedPage, performs
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.view import Now, View, findings
from supervisor.host.workbench import beside
from supervisor.servers.deployment import Deployment
from supervisor.servers.launches.running import Launches
from supervisor.service.doors.addresses import path_of
from supervisor.tokens.counting import savings

ROWS_AT_ONCE: Final = 16
"""A row takes some 50 us."""
_NOT_READ: Final = msgspec.structs.asdict(Readings())
OF_LISTS = LISTS
"""What is not summed of launches that not all share: they offer what others do, too."""
_SUMMED = (*OF_LISTS, "calls", "failures", "in_flight", "waiting", "restarts")
_MAX_TOOL_NAMES = 500
"""Of a launch, on its page."""
_MOMENTS = ("since", "used_at", "last_error_at", "next_start", "retry_at", "asked_since", "last_sign_at")
_NO_FIGURES = {"memory_bytes": None, "cpu_s": None, "cpu_percent": None, "processes": None}
"""Of a server without a process here."""


@performs(operations.HEALTH)
async def health(_: View) -> Any:
    """Say that the daemon lives: 200 as long as anything answers."""
    return {"status": "ok"}


@performs(operations.READINESS)
async def readiness(view: View) -> Response:
    """Say whether every server was tried once: 200, or 503 before.

    It names the servers that are still on their way, and those that failed, to whoever may see them.
    """
    body, ready = _readiness(view)
    return json_response(body, 200 if ready else 503)


class StatusPage(SharedPage):
    """The page about all servers, which is made for many at once."""

    def __init__(self, view: View) -> None:
        super().__init__(partial(_status, view))


@performs(operations.STATUS)
async def status(page: StatusPage) -> bytes:
    """Show every server, the totals and the tokens."""
    return await page.get()


@performs(operations.STATUS_DEBUG)
async def debug(view: View) -> bytes:
    """Show tools, `discovery`, processes and findings, by server and transport; 404 with `show_debug` off."""
    if not view.deployment.value.settings.show_debug:
        abort(404)
    return await _debug(view)


def _readiness(view: View) -> tuple[dict[str, Any], bool]:
    """Ready: the index is built and every server was tried once. Those that fail hold nothing up."""
    statuses = view.reports()
    known = view.catalogue.value.entries
    words = {name: installation_status(status, listed=name in known) for name, status in statuses.items()}
    failed = sorted(name for name, word in words.items() if word in DOWN)
    discovering = sorted(name for name, status in statuses.items() if name not in known and _is_untried(status))
    reason = ""
    if view.closing.is_set():
        reason = "the daemon is shutting down"
    elif not view.catalogue.value.indexed:
        reason = "the catalogue of earlier runs is being read"
    elif discovering:
        who = "server is" if len(discovering) == 1 else "servers are"
        reason = f"{len(discovering)} {who} being discovered for the first time"
    body = {"ready": not reason, "servers": len(statuses), "discovering": discovering, "failed": failed}
    if not REQUESTER.get().person.may("auditor"):
        body = {"ready": not reason}
        reason = reason and "servers are being tried for the first time, or the daemon ends"
    return ({**body, "reason": reason} if reason else body), not reason


def _is_untried(status: ServerStatus) -> bool:
    over = status.state in (State.FAILED, State.RESPAWNING, State.STOPPED)
    ending = status.state is State.DRAINING  # a failed try is over when its process is
    return not over and status.restarts == 0 and (ending or status.last_error is None)


async def server_row(view: View, server: str) -> dict[str, Any]:
    status = view.status_of(server)
    if status is None:
        return {"server": server}
    catalogue = view.catalogue.value
    row = _row_of(status, catalogue, view.now(), token_savings(catalogue)["exposed_tokens"])
    row |= _figures_row(row, await view.figures()) | _tool_names_row(catalogue, server)
    row |= _sandbox_row(view.deployment.value.entries, server)
    warnings = await view.described.warnings(catalogue)
    row |= _limits_row(view.deployment.value, server, view.room)
    return {**row, **_holders_row(view.launches, server), "warnings": warnings.get(server, 0)}


async def _status(view: View) -> bytes:
    """Return the page about all servers: their rows are made and encoded some at a time, others have their turns."""
    catalogue = view.catalogue.value
    now = view.now()
    tokens = token_savings(catalogue)
    warnings = await view.described.warnings(catalogue)
    figures = await view.figures()
    entries = view.deployment.value.entries
    rows: list[msgspec.Raw] = []
    servers: set[str] = set()
    states, words, sums = Counter[str](), Counter[str](), Counter[str]()
    for number, name in enumerate(view.live.names(view.reports())):
        if number % ROWS_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
        if (status := view.status_of(name)) is not None:
            row = {**_row_of(status, catalogue, now, tokens["exposed_tokens"]), "warnings": warnings.get(name, 0)}
            row |= _holders_row(view.launches, name) | _figures_row(row, figures) | _sandbox_row(entries, name)
            servers.add(server_of(name))
            states[row["state"]] += 1
            words[row["status"] or DISABLED] += 1
            sums.update({each: row.get(each) or 0 for each in _SUMMED if not (is_own(name) and each in OF_LISTS)})
            rows.append(msgspec.Raw(msgspec.json.encode(row)))
    return msgspec.json.encode(
        {
            "version": view.version,
            "started": now.unix_of(view.started),
            "uptime_s": round(max(0.0, now.elapsed - view.started), 1),
            "catalog_revision": catalogue.revision,
            "servers": rows,
            "totals": {
                "servers": len(servers),
                "states": states,
                "statuses": words,
                **{name: sums[name] for name in _SUMMED},
            },
            "tokens": tokens,
            "configuration": msgspec.to_builtins(view.configurator.source.value),
            "configuration_problems": [str(problem) for problem in view.deployment.value.problems],
            "degraded": view.degraded(),
            "plugins": view.plugins(),
            "store": view.store(),
            "audit": None if view.trail is None else view.trail.status(),
            "loop": view.turns.status(),
            "log_records_lost": view.log_records_lost(),
            "events": view.events.status(),
            "questions": len(view.elicitations.of(view.principal)),
            "questions_at": view.elicitations.address(),
            **_node(view.fleet.peers),
        }
    )


def _node(peers: Peers | None) -> dict[str, Any]:
    """Return of which node the page is, and which others there are; nothing where the daemon is alone."""
    return (
        {} if peers is None else {"fleet": {"node": peers.name, "others": sorted(each.name for each in peers.others())}}
    )


def _holders_row(launches: Launches, launch: str) -> dict[str, Any]:
    """Return who has a launch that not all share, and of a server how many such launches people have."""
    if is_own(launch):
        return {"users": launches.people_of(launch)}
    count = launches.count_of(launch)
    return {"launches": count} if count else {}


def _sandbox_row(entries: Mapping[str, ServerConfig], launch: str) -> dict[str, Any]:
    """Return what the sandbox of a server denies in words, null for one that runs in none."""
    config = entries.get(server_of(launch))
    sandbox = config.sandbox.sandbox if config is not None else None
    return {"sandbox": None if config is None or sandbox is None else sandbox.denial(config.cwd or "")}


def _tool_names_row(catalogue: Catalogue, launch: str) -> dict[str, Any]:
    """Return the names of the first 500 tools of a launch that not all share: `/api/tools` has them for its users."""
    entry = catalogue.own.get(launch)
    return {} if entry is None else {"tool_names": [tool.name for tool in entry.offer.tools[:_MAX_TOOL_NAMES]]}


def word_of(status: ServerStatus, catalogue: Catalogue) -> InstallationStatus | None:
    """Return what the users of a launch may expect of it; None where it is switched off."""
    entry = catalogue.of_launch(status.server)
    return installation_status(status, listed=entry is not None and entry.available)


def _status_row(status: ServerStatus, catalogue: Catalogue, now: Now) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(status)
    row["status"] = word_of(status, catalogue)
    del row["down"], row["exit_code"], row["signal"]
    for name in _MOMENTS:
        if row[name] is not None:
            row[name] = now.unix_of(row[name])
    for breaker in row["breakers"]:
        breaker["until"] = now.unix_of(breaker["until"])
    for instance in row["instances"]:
        instance["since"] = now.unix_of(instance["since"])
    if status.discovery.last_at is not None:
        row["discovery"]["last_at"] = now.unix_of(status.discovery.last_at)
    return row


def _figures_row(row: Mapping[str, Any], figures: Mapping[int, ProcessFigures]) -> dict[str, Any]:
    """Return memory and processor time of a server, null where it has no process here or nobody can tell.

    `row` is that of `_status_row`. Of several instances it is the sum, and each has its own.
    """
    instances = [{**each, **_figures_of([each["pid"]], figures)} for each in row["instances"]]
    pids = [each["pid"] for each in instances] or [row["pid"]]
    return {**_figures_of(pids, figures), "instances": instances}


def _figures_of(pids: Iterable[int | None], figures: Mapping[int, ProcessFigures]) -> dict[str, Any]:
    known = [figures[pid] for pid in pids if pid is not None and pid in figures]
    if not known:
        return _NO_FIGURES
    return {name: sum(getattr(each, name) for each in known) for name in _NO_FIGURES}


def _limits_row(deployment: Deployment, launch: str, room: Room) -> dict[str, Any]:
    """Return how each limit of a server is kept (`kernel`, `watched`, `not enforced`), by its name; nothing if it has
    none.
    """
    config = deployment.entries.get(server_of(launch))
    if config is None or config.kind != "stdio":
        return {}
    allotment = msgspec.convert(config, ProcessLimits, from_attributes=True).allotment(launch)
    kept = allotment.enforcement(room.groups.controllers)
    return {"limits": kept} if kept else {}


def _row_of(status: ServerStatus, catalogue: Catalogue, now: Now, exposed_tokens: int) -> dict[str, Any]:
    """Return one server's row: `since` is unix time, `since_s` the age of the state in seconds.

    `status` is what its users may expect, `path` that of its own door. `tokens` are what its tools would cost if a
    model saw them: all of that is saved. `tokens_share_percent` is its part of what all servers would cost.
    `hidden_tools`: the configuration hides them. `unapproved_tools` wait for approval,
    `held_tools` of them are not seen meanwhile. A launch that not all share has a row of its own.
    """
    row = _status_row(status, catalogue, now)
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


async def _debug(view: View) -> bytes:
    catalogue = view.catalogue.value
    now, figures = view.now(), await view.figures()
    processes: dict[str, dict[str, Any]] = {}
    for name in view.live.names(view.reports()):
        await trio.lowlevel.checkpoint()
        if (status := view.status_of(name, stderr=True)) is not None:
            row = _status_row(status, catalogue, now)
            processes[name] = row | _figures_row(row, figures)
    described = await view.described.of(catalogue)
    own = {
        "version": view.version,
        "usage": view.usage(view.principal),
        "connections": view.counters(),
        "store": view.store(),
        "degraded": view.degraded(),
        "tokens": token_savings(catalogue),
    }
    return await beside(partial(_page, catalogue, processes, described, own))


def _page(
    catalogue: Catalogue,
    processes: Mapping[str, Mapping[str, Any]],
    described: Mapping[str, Mapping[str, Metadata]],
    own: Mapping[str, Any],
) -> bytes:
    """Return the page as JSON, with the members of `own`; megabytes, where there are many tools."""
    by_transport = Counter[str]()
    for entry in catalogue.entries.values():
        by_transport[entry.transport] += len(entry.tools)
    page = {
        **own,
        "tools_by_transport": by_transport,
        "tools_by_server": {
            name: [{"name": tool.name, "tokens": entry.offer.token_counts.get(tool.name)} for tool in entry.offer.tools]
            for name, entry in catalogue.entries.items()
        },
        "states": Counter(row["state"] for row in processes.values()),
        "statuses": Counter(row["status"] or DISABLED for row in processes.values()),
        "discovery": _discovery(processes),
        "processes": processes,
        "index": {"documents": len(catalogue.index), "complete": catalogue.indexed},
        "findings": findings(described),
    }
    return msgspec.json.encode(page)


def _discovery(processes: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return how lists were read, by server as `Readings` says it, and by transport: sums, and the last of all."""
    by_transport: dict[str, dict[str, Any]] = {}
    for row in processes.values():
        read, total = row["discovery"], by_transport.setdefault(row["transport"], {"servers": 0, **_NOT_READ})
        total["servers"] += 1
        total["count"] += read["count"]
        total["failures"] += read["failures"]
        if (read["last_at"] or 0.0) > (total["last_at"] or 0.0):
            total["last_at"], total["last_s"] = read["last_at"], read["last_s"]
    return {"by_transport": by_transport, "by_server": {name: row["discovery"] for name, row in processes.items()}}
