"""What is mine: who the daemon takes somebody for, and how the servers are doing that are theirs (`/api/me`).

A row has nothing that depends on what others do with a server that they share: not whether its process sleeps, nor
how often they called it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import trio

from actors.catalogue.criteria import Usage
from actors.catalogue.snapshot import Catalogue
from actors.errors import InvalidArguments
from actors.installation import installation_status
from actors.messages import ServerStatus
from supervisor import operations
from supervisor.front.pages.performing import PERFORMERS, performs
from supervisor.front.pages.requests import REQUESTER
from supervisor.front.pages.status import OF_LISTS, token_savings
from supervisor.front.pages.view import View
from supervisor.identity.requester import GOOD_FOR_S, Purpose
from supervisor.service.doors.addresses import path_of


class TicketQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`purpose`: what the ticket opens."""

    purpose: Purpose = "socket"


@performs(operations.ME)
async def me(view: View) -> Any:
    """Show who you are, what you have to say yes to, and your servers: status, offer, and what each waits for."""
    requester = REQUESTER.get()
    person, token = requester.person, requester.token
    seen = await view.seen_by(person)
    catalogue, statuses = seen.catalogue, seen.statuses
    servers, calls = sorted(catalogue.names.servers), _calls(view.totals(view.principal))
    return {
        "user": person.user,
        "team": person.team,
        "role": person.role,
        "expires_at": token.expires_at if token is not None else None,
        "catalog_revision": catalogue.revision,
        "servers": [{**_row(server, statuses.get(server), catalogue), "calls": calls[server]} for server in servers],
        "tokens": token_savings(catalogue),
        "confirm": msgspec.to_builtins(view.confirm_rules()),
        "questions": len(view.elicitations.of(view.principal)),
    }


@performs(operations.OPERATIONS)
async def operations_of(view: View) -> Any:
    """List what you may ask for in your role: method and path, what it does, its parameters, the command for it."""
    person = REQUESTER.get().person
    every = [each for subject in operations.SUBJECTS.values() for each in subject]
    rows = [PERFORMERS[each].row() for each in every if each.role is None or person.may(each.role)]
    return {"version": view.version, "operations": rows}


@performs(operations.MAKE_TICKET)
async def make_ticket(view: View, query: TicketQuery) -> Any:
    """Get a ticket that opens one WebSocket, as `?ticket=`, for clients that cannot send a token there.

    It is good once, for `expires_s` seconds. With `purpose=sign-in` it signs a browser in, and opens nothing else.
    """
    requester = REQUESTER.get()
    if not requester.is_proven:
        raise InvalidArguments("no ticket is needed: this daemon does not ask who anybody is")
    made = view.tickets.make(requester, trio.current_time(), query.purpose)
    return {"ticket": made, "expires_s": GOOD_FOR_S}


def _calls(totals: Usage) -> Counter[str]:
    """Return how often somebody called each server, whenever that was."""
    calls = Counter[str]()
    for (server, _), tool in totals.items():
        calls[server] += tool.calls
    return calls


def _row(server: str, status: ServerStatus | None, catalogue: Catalogue) -> dict[str, Any]:
    """Return one server: `reason` says why it is not online, `missing` which values somebody has to give."""
    entry = catalogue.entries.get(server)
    word = installation_status(status, listed=entry is not None and entry.available)
    row = {
        "server": server,
        "status": word,
        "transport": status.transport if status is not None else "stdio",
        "path": path_of(server),
        "reason": "" if status is None or word == "online" else status.reason,
        "missing": [] if status is None else list(status.awaits),
    }
    counts = {kind: len(getattr(entry.offer, kind)) if entry is not None else 0 for kind in OF_LISTS}
    counted = sum(entry.offer.token_counts.values()) if entry is not None and entry.offer.token_counts else None
    return {**row, **counts, "tokens": counted}
