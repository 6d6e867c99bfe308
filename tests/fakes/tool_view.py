"""What the operators' pages show, over the small catalogue and with no server running."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from actors.catalogue.snapshot import Catalogue
from actors.facts import FactLog
from actors.kit import Latest
from actors.life.states import State
from actors.messages import ServerStatus
from supervisor.front.pages.view import View
from supervisor.identity.people import Person
from supervisor.identity.tokens import TokenTable
from supervisor.servers.deployment import Deployment
from supervisor.servers.journals.journals import Journals
from supervisor.servers.journals.keeper import LogReader
from supervisor.service.asking.elicitations import Elicitations
from supervisor.service.lookup.visible import Visible
from supervisor.service.port import Service
from supervisor.store.records import TOKENS
from tests.fakes.call_memory import no_history
from tests.fakes.control import Configured, NoLaunches, Obeys
from tests.fakes.no_values import no_values
from tests.fakes.rows import MemoryRows
from tests.fakes.told_events import events_of
from tests.fakes.tool_catalogue import CATALOGUE, USED


async def nobody_serves(person: Person) -> Service:
    raise AssertionError(f"nobody calls anything here: {person.user}")


def view_of(**more: Any) -> View:
    """Return a view; `more` replaces members of it."""
    statuses = {
        name: ServerStatus(server=name, state=State.READY, wanted="up", since=0.0) for name in ("files", "shop", "new")
    }
    members: dict[str, Any] = {
        "version": "1",
        "started": 0.0,
        "clock": lambda: 1.0,
        "catalogue": Latest(CATALOGUE),
        "statuses": Latest(statuses),
        "facts": FactLog(lambda: 1.0, 1),
        "events": events_of(),
        "closing": trio.Event(),
        "control": Obeys(),
        "launches": NoLaunches(),
        "configurator": Configured(),
        "editor": Configured(),
        "elicitations": Elicitations(FactLog(lambda: 1.0)),
        "tokens": TokenTable(MemoryRows(TOKENS)),
        "values": no_values(),
        "history": no_history(),
        "service_for": nobody_serves,
        "logs": LogReader(Journals(lambda: 0.0)),
        "totals": lambda principal: USED,
    }
    members |= more
    return View(**{"seen_by": everybody_sees(members["catalogue"], members["statuses"]), **members})


def everybody_sees(
    catalogue: Latest[Catalogue], statuses: Latest[Mapping[str, ServerStatus]]
) -> Callable[[Person], Awaitable[Visible]]:
    """Return what shows everything to everybody."""

    async def seen_by(person: Person) -> Visible:
        del person
        await trio.lowlevel.checkpoint()
        return Visible(catalogue, statuses, Latest(Deployment()))

    return seen_by
