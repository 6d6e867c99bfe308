"""The pages for operators and programs: health, readiness, status, debug, and the feed of events.

Nothing here carries a payload of a call, a value of the configuration's `env` or `headers`, or text of an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import trio
from quart import Response, websocket
from quart_trio import QuartTrio

from actors.catalogue.criteria import Usage
from actors.catalogue.snapshot import Catalogue
from actors.kit import Degraded, Feed, Latest
from actors.kit.directory import Directory
from actors.life.states import State
from actors.messages import ServerStatus
from actors.principal import LOCAL, Principal
from actors.registry.actor import Happening
from actors.server import ServerMessage
from actors.server.journal import Journal
from supervisor.front.mcp.doors import path_of
from supervisor.front.pages.debug import debug_page
from supervisor.front.pages.metadata import Described
from supervisor.front.pages.statuses import fresh, told_by, with_stderr
from supervisor.host.workbench import beside
from supervisor.oauth.port import Accounts
from supervisor.servers.deployment import Deployment
from supervisor.servers.orders import Control
from supervisor.service.elicitations import Elicitations
from supervisor.tokens.counting import META_TOKENS
from supervisor.tokens.tokenizer import savings

SUMMED = ("tools", "resources", "templates", "prompts", "calls", "failures", "in_flight", "waiting", "restarts")
GOING_AWAY = 1001
"""RFC 6455 section 7.4.1."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the pages show, and to whom. Functions are called for each page."""

    version: str
    started: float
    clock: Callable[[], float]
    directory: Directory[ServerMessage]
    catalogue: Latest[Catalogue]
    statuses: Latest[Mapping[str, ServerStatus]]
    feed: Feed[Happening]
    closing: trio.Event
    deployment: Latest[Deployment] = msgspec.field(default_factory=lambda: Latest(Deployment()))
    store: Callable[[], Any] = dict
    degraded: Callable[[], list[Degraded]] = list
    usage: Callable[[Principal], Any] = lambda principal: {}
    counters: Callable[[], Any] = dict
    log_records_lost: Callable[[], int] = int
    totals: Callable[[Principal], Usage] = lambda principal: {}
    control: Control | None = None
    accounts: Accounts | None = None
    elicitations: Elicitations | None = None
    journals: Callable[[str], Journal | None] = lambda server: None
    described: Described = msgspec.field(default_factory=Described)
    principal: Principal = LOCAL

    def seen(self) -> Catalogue:
        """Return what the principal may see of the newest catalogue."""
        return self.catalogue.value.view(self.principal)

    def reported(self) -> Mapping[str, ServerStatus]:
        """Return what was last reported of servers: of all of them, until identities are configured."""
        return self.statuses.value


def routes(view: View) -> Callable[[QuartTrio], None]:
    """Return a function that adds the routes to an application."""

    def register(app: QuartTrio) -> None:
        async def healthz() -> Response:
            return _json({"status": "ok"})

        async def readyz() -> Response:
            body, ready = _readiness(view)
            return _json(body, 200 if ready else 503)

        async def status() -> Response:
            return _json(await _status(view))

        async def debug() -> Response:
            if not view.deployment.value.settings.show_debug:
                return _json({"error": {"code": 403, "message": 'the setting "show_debug" is off'}}, 403)
            return Response(await _debug(view), content_type="application/json")

        async def events() -> None:
            await _events(view)

        app.add_url_rule("/healthz", view_func=healthz)
        app.add_url_rule("/readyz", view_func=readyz)
        app.add_url_rule("/api/status", view_func=status)
        app.add_url_rule("/api/status/debug", view_func=debug)
        app.add_websocket("/api/events", view_func=events)

    return register


def _json(body: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status=status, content_type="application/json")


def _readiness(view: View) -> tuple[dict[str, Any], bool]:
    """Ready: the index is built and every server was tried once. Those that fail hold nothing up."""
    statuses = view.reported()
    known = view.seen().entries
    failing = sorted(name for name, status in statuses.items() if _fails(status, name in known))
    coming = (name for name, status in statuses.items() if status.state is not State.STOPPED)
    discovering = sorted(name for name in coming if name not in known and name not in failing)
    reason = ""
    if view.closing.is_set():
        reason = "the daemon is shutting down"
    elif not view.seen().indexed:
        reason = "the catalogue of earlier runs is being read"
    elif discovering:
        reason = f"{len(discovering)} servers are being discovered for the first time"
    body = {"ready": not reason, "servers": len(statuses), "discovering": discovering, "failed": failing}
    return ({**body, "reason": reason} if reason else body), not reason


def _fails(status: ServerStatus, known: bool) -> bool:
    """Say whether a server is down by a failure, or was never up and has failed, whatever it does now."""
    down = status.state in (State.FAILED, State.RESPAWNING)
    return down or (not known and (status.restarts > 0 or status.last_error is not None))


async def server_row(view: View, server: str) -> dict[str, Any]:
    """Return the row of `/api/status` for one server; only its name if nothing is known of it yet."""
    status = await told_by(server, view.directory) or view.reported().get(server)
    if status is None:
        return {"server": server}
    catalogue = view.seen()
    row = _row(status, catalogue, view.clock(), token_savings(catalogue)["exposed_tokens"])
    warnings = await view.described.warnings(catalogue)
    return {**row, "warnings": warnings.get(server, 0)}


async def _status(view: View) -> dict[str, Any]:
    catalogue = view.seen()
    now = view.clock()
    tokens = token_savings(catalogue)
    exposed = tokens["exposed_tokens"]
    servers = [
        _row(status, catalogue, now, exposed) for status in (await fresh(view.reported(), view.directory)).values()
    ]
    warnings = await view.described.warnings(catalogue)
    servers = [{**row, "warnings": warnings.get(row["server"], 0)} for row in servers]
    return {
        "version": view.version,
        "started": view.started,
        "uptime_s": round(max(0.0, now - view.started), 1),
        "catalog_revision": catalogue.revision,
        "servers": servers,
        "totals": _totals(servers),
        "tokens": tokens,
        "configuration_problems": [str(problem) for problem in view.deployment.value.problems],
        "degraded": view.degraded(),
        "store": view.store(),
        "log_records_lost": view.log_records_lost(),
        **_questions(view),
    }


def _questions(view: View) -> dict[str, Any]:
    """Return how many questions of servers wait for a person, and where they can be answered."""
    if view.elicitations is None:
        return {}
    return {"questions": len(view.elicitations.of(view.principal)), "questions_at": view.elicitations.address()}


def _row(status: ServerStatus, catalogue: Catalogue, now: float, exposed_tokens: int) -> dict[str, Any]:
    """Return one server's row: `since` is unix time, `since_s` the age of the state in seconds.

    `path` is that of its own door. `tokens` are what its tools would cost if a model saw them: all of that is saved.
    `tokens_share_percent` is its part of what all servers would cost.
    """
    row: dict[str, Any] = msgspec.to_builtins(status)
    row.pop("stderr")
    row["since_s"] = round(max(0.0, now - status.since), 1)
    row["path"] = path_of(status.server)
    entry = catalogue.entries.get(status.server)
    if entry is not None:
        offer = entry.offer
        row["tools"] = len(offer.tools)
        row["resources"] = len(offer.resources)
        row["templates"] = len(offer.templates)
        row["prompts"] = len(offer.prompts)
        tokens = sum(offer.token_counts.values())
        row["tokens"] = tokens if offer.token_counts else None
        row["tokens_exact"] = offer.tokens_exact
        row["tokens_share_percent"] = round(tokens / exposed_tokens * 100, 2) if exposed_tokens else 0.0
        row["problems"] = list(offer.problems)
    return row


def _totals(servers: list[dict[str, Any]]) -> dict[str, Any]:
    states: dict[str, int] = {}
    for row in servers:
        states[row["state"]] = states.get(row["state"], 0) + 1
    sums = {name: sum(row.get(name) or 0 for row in servers) for name in SUMMED}
    return {"servers": len(servers), "states": states, **sums}


def token_savings(catalogue: Catalogue) -> dict[str, Any]:
    """Return the numbers behind "tokens saved"; `counted` says whether every tool has a count."""
    offers = [entry.offer for entry in catalogue.entries.values() if entry.offer.tools]
    exposed = sum(sum(offer.token_counts.values()) for offer in offers)
    counted = all(len(offer.token_counts) >= len(offer.tools) for offer in offers)
    exact = counted and all(offer.tokens_exact for offer in offers)
    numbers: dict[str, Any] = msgspec.to_builtins(savings(exposed_tokens=exposed, meta_tokens=META_TOKENS, exact=exact))
    return {**numbers, "counted": counted}


async def _debug(view: View) -> bytes:
    """Tools by transport and by server, discovery, processes: for finding out why, never with secrets."""
    catalogue = view.seen()
    statuses = await with_stderr(await fresh(view.reported(), view.directory), view.directory)
    described = await view.described.of(catalogue)
    own = {
        "version": view.version,
        "usage": view.usage(view.principal),
        "connections": view.counters(),
        "store": view.store(),
    }
    own["tokens"] = token_savings(catalogue)
    return await beside(lambda: debug_page(catalogue, statuses, described, own))


async def _events(view: View) -> None:
    """Send every event from now on; a client that falls behind is told how many it missed."""
    await websocket.accept()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_with, nursery.cancel_scope, view.closing)
        nursery.start_soon(end_when_gone, nursery.cancel_scope)
        await _tell_events(view)
    if view.closing.is_set():
        await websocket.close(GOING_AWAY, "the daemon is shutting down")


async def _tell_events(view: View) -> None:
    number = view.feed.newest
    hello = {"type": "hello", "time": view.clock(), "revision": view.seen().revision}
    await websocket.send(msgspec.json.encode(hello).decode())
    while True:
        number, missed, events = await view.feed.after(number)
        if missed:
            await websocket.send(msgspec.json.encode({"type": "missed", "count": missed}).decode())
        for event in events:
            await websocket.send(msgspec.json.encode(event).decode())
            await trio.lowlevel.checkpoint()  # after the peer is gone, sends return at once


async def end_with(scope: trio.CancelScope, closing: trio.Event) -> None:
    """End the scope with the daemon."""
    await closing.wait()
    scope.cancel()


async def end_when_gone(scope: trio.CancelScope) -> None:
    """Read what the client says, which means nothing, so that its going away is noticed."""
    while True:
        await websocket.receive()
        await trio.lowlevel.checkpoint()
        if scope.cancel_called:
            return
