"""The parts of the documentation that are made from the code: configuration, commands, routes, lifecycle, errors.

`python -m docs.generate` writes them, in the root of a checkout; a test compares. A generated part stands between
`<!-- generated: NAME -->` and `<!-- end: NAME -->`. The lifecycle is drawn from `step` itself, so that picture and code
cannot part.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

from msgspec.structs import replace

from actors import errors
from actors.life import lifecycle
from actors.life.lifecycle import step
from actors.life.states import Life, State, Timer
from actors.protocol.tasks import UnknownTask
from actors.protocol.wire.repeated_keys import RepeatedKey
from docs.admission import admission_list
from docs.cases import case_counts, case_lists
from docs.commands import full_help, overview
from docs.events import envelope_fields, event_list, server_fields, tool_fields
from docs.faults import fault_table
from docs.goals import goal_list
from docs.metrics import metric_list
from docs.routes import dashboard_list, route_list
from supervisor.cli import GROUPS
from supervisor.clients.doors import Offered, choose
from supervisor.config.client_table import CLIENTS
from supervisor.config.clients import Fact, Facts, Machine
from supervisor.fleet.engine import EngineAway, LeaseEnded, NodeAway
from supervisor.identity.audit import ACTIONS
from supervisor.reference.configuration import blocks, bullet
from supervisor.servers.safety import NotReadOnly
from supervisor.service.asking.confirmations import Declined
from supervisor.service.asking.rounds import CapabilityRequired
from supervisor.service.doors.one_server import LoginShared
from supervisor.service.doors.task_requests import TasksNotDeclared
from supervisor.service.events.limits import (
    CallbackUnusable,
    PrincipalNeeded,
    TooManyEvents,
    UnknownEvent,
    UnknownSubscription,
    UnsupportedDelivery,
)

Arrow = tuple[str, str, str]
BESIDE = (
    *(CapabilityRequired, Declined, EngineAway, LeaseEnded, NodeAway, NotReadOnly, RepeatedKey),
    *(TasksNotDeclared, UnknownTask),
)
"""Errors that clients meet and that stand with what raises them, not in `actors/errors.py`."""
OF_EVENTS = (
    *(CallbackUnusable, LoginShared, PrincipalNeeded, TooManyEvents, UnknownEvent, UnknownSubscription),
    UnsupportedDelivery,
)
"""The same about events of servers, which have a page of their own."""
SETTINGS = {
    "configuration": ("units", "top-level", "foreign"),
    "servers": ("server", "inherited"),
    "tools": ("tools", "profiles"),
    "logins": ("oauth",),
    "daemon": ("supervisor",),
    "environment": ("environment",),
    "identity": ("identity", "user", "team", "issuer", "introspection"),
    "values": ("value",),
}
"""The pages that have the keys of the configuration, and the generated parts on each."""
CASES = {
    "faults-of-servers": "SP",
    "faults-of-lists": "NLQ",
    "faults-of-remotes-and-clients": "HCW",
    "faults-of-the-daemon": "DIX",
}
"""The pages that have the catalogue of faults, and the letters on each."""

MANY = Offered(tools=1_000, tokens=100_000, servers=(), meta_tokens=350, by_effect=True)
"""What a daemon has for whose clients the pages name a door."""
SEARCHES = {
    "always": "searches tools itself",
    "many": "searches tools itself once there are many",
    "never": "sends its model all tools",
}
SIDE_BY_SIDE = {
    "all": "runs calls of one turn side by side",
    "read-only": "runs calls of one turn side by side if the tool says that it only reads",
    "none": "has its model make one call at a time",
}


@cache
def parts() -> Mapping[str, Mapping[str, str]]:
    """Return the generated parts of each file by their names."""
    settings, lists = blocks(), case_lists()
    return {
        "docs/reference/commands.md": {"commands": overview()},
        **{f"docs/reference/commands/{group}.md": {"commands": full_help(group)} for group in GROUPS},
        "docs/reference/http.md": {"routes": route_list()},
        "docs/reference/dashboard.md": {"routes": dashboard_list()},
        "docs/background/security.md": {"admission": admission_list()},
        "docs/reference/lifecycle.md": {"lifecycle": f"```mermaid\n{mermaid()}\n```"},
        "docs/guides/budgets.md": {"memory": settings["memory"]},
        "docs/background/search-phrases.md": {"describe": settings["describe"]},
        "docs/guides/sandbox.md": {"sandbox": settings["sandbox"]},
        "docs/guides/fleet.md": {"fleet": settings["fleet"]},
        "docs/reference/error-types.md": {"errors": error_list(set(shown_errors()) - set(OF_EVENTS))},
        "docs/developers/server-events.md": {"event-errors": error_list(OF_EVENTS)},
        "docs/reference/audit.md": {"actions": action_list()},
        "docs/reference/events.md": {
            "envelope": envelope_fields(),
            "server": server_fields(),
            "tool": tool_fields(),
            "sink": settings["sink"],
        },
        "docs/reference/event-kinds.md": {"kinds": event_list()},
        "docs/reference/metrics.md": {"metrics": metric_list()},
        **{f"docs/reference/{page}.md": {name: settings[name] for name in names} for page, names in SETTINGS.items()},
        "docs/start/clients.md": {"clients": client_list(), "client-facts": fact_list()},
        "docs/background/comparison.md": {"faults": fault_table()},
        "docs/background/reliability.md": {"case-counts": case_counts(), "goals": goal_list()},
        **{
            f"docs/background/{page}.md": {f"cases-{each}": lists[f"cases-{each}"] for each in letters}
            for page, letters in CASES.items()
        },
    }


def rewrite(text: str, generated: Mapping[str, str]) -> str:
    """Return `text` with these parts replaced by the present ones. Raises `ValueError` if one is missing."""
    for name, part in generated.items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        pieces = re.split(f"{begin}.*?{end}", text, flags=re.DOTALL)
        if len(pieces) != 2:
            raise ValueError(f"the part {name} is there {len(pieces) - 1} times instead of once")
        text = f"{begin}\n{part}\n{end}".join(pieces)
    return text


def events(incarnation: int) -> tuple[lifecycle.Event, ...]:
    """One of each kind of event; those of a process belong to `incarnation`."""
    return (
        lifecycle.Wake(),
        lifecycle.Sleep(),
        lifecycle.Restart(),
        lifecycle.Stop(),
        lifecycle.Spawned(incarnation),
        lifecycle.SpawnRefused(incarnation, "reason"),
        lifecycle.SpawnRefused(incarnation, "reason", permanent=True),
        lifecycle.SpawnRefused(incarnation, "reason", scarce=True),
        lifecycle.Agreed(incarnation),
        lifecycle.Agreed(incarnation, known=True),
        lifecycle.NotAgreed(incarnation, "reason"),
        lifecycle.Barred(incarnation, "reason"),
        lifecycle.Fallback(incarnation),
        lifecycle.Discovered(incarnation),
        lifecycle.Violated(incarnation, "reason"),
        lifecycle.Away(incarnation, "reason"),
        lifecycle.Expired(incarnation),
        lifecycle.Drained(incarnation),
        lifecycle.Exited(incarnation, "reason"),
        lifecycle.Exited(incarnation, "reason", normal=True),
        lifecycle.Exited(incarnation, "reason", renewable=True),
        lifecycle.Prolonged(incarnation, Timer.HANDSHAKE, 1.0),
        lifecycle.Prolonged(incarnation, Timer.IDLE, 1.0),
        lifecycle.Admitted(1.0),
        lifecycle.BackoffOver(),
        lifecycle.GaveUp(),
    )


def arrows() -> list[Arrow]:
    """Return each (state, event, next state) that can happen, where the state changes: a walk over all lives."""
    changes: set[Arrow] = set()
    todo = [Life()]
    seen: set[Life] = set()
    while todo:
        life = todo.pop()
        for event in events(life.incarnation):
            after, _ = step(life, event)
            if after.state is not life.state:
                changes.add((life.state.value, type(event).__name__, after.state.value))
            known = replace(after, incarnation=1)
            if known not in seen:
                seen.add(known)
                todo.append(known)
    return sorted(changes)


def mermaid() -> str:
    """Return the diagram: one line per pair of states, with all events that lead from one to the other."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for before, event, after in arrows():
        pairs.setdefault((before, after), []).append(event)
    lines = ["stateDiagram-v2", f"    [*] --> {State.DORMANT}"]
    lines += [f"    {before} --> {after}: {', '.join(names)}" for (before, after), names in sorted(pairs.items())]
    lines.append(f"    {State.STOPPED} --> [*]")
    return "\n".join(lines)


def error_classes() -> list[type[errors.SupervisorError]]:
    """Return every error of the taxonomy that a client or an operator can meet, in the order of the file."""
    classes = [value for value in vars(errors).values() if inspect.isclass(value)]
    return [value for value in classes if issubclass(value, errors.SupervisorError)]


def shown_errors() -> list[type[errors.SupervisorError]]:
    """Return the errors that a client can meet, by the word that it knows each by."""
    return sorted((*error_classes(), *BESIDE, *OF_EVENTS), key=lambda error: error.kind)


def error_line(error: type[errors.SupervisorError]) -> str:
    """Return what a program can act on."""
    retry = "retry" if error.retryable else "no retry"
    return f"- **`{error.kind}`**, `{error.__name__}`: code {error.code}, HTTP {error.http_status}, {retry}."


def error_list(of: Collection[type[errors.SupervisorError]]) -> str:
    lines = []
    for error in shown_errors():
        if error not in of:
            continue
        meaning = " ".join(inspect.cleandoc(error.__doc__ or "").partition("\n\n")[0].split())
        lines += [error_line(error), *wrap(meaning, 120, initial_indent="  ", subsequent_indent="  ")]
    return "\n".join(lines)


def action_list() -> str:
    """Return the actions that the audit records."""
    return "\n".join(bullet(f"**`{action}`**: {meaning}") for action, meaning in ACTIONS.items())


def client_list() -> str:
    """Return the clients that `connect` knows, with their places on Linux: a list, as rows that long fit no phone."""
    linux = Machine(platform="linux", environ={}, home="~")
    items = []
    for client in CLIENTS:
        variables = [f"`{file.partition('/')[0]}`" for file in client.files if file.startswith("$")]
        moved = f", or where {' or '.join(variables)} says" if variables else ""
        way = "" if client.remote else ", over stdio"
        place = f"`{client.places(linux)[-1]}`{moved}"
        door = choose(client.facts, MANY).door
        items.append(bullet(f"`{client.name}`: {client.title}{way}, in {place}. Door: `{door}`. {client.afterwards}"))
    return "\n".join(items)


def fact_list() -> str:
    """Return what is known of how each client treats tools, with where it is from, last those of which nothing is."""
    told = [(client.title, [*facts_of(client.facts)]) for client in CLIENTS]
    silent = [title for title, facts in told if not facts]
    items = [bullet(f"**{title}:** {'; '.join(facts)}.") for title, facts in told if facts]
    return "\n".join([*items, bullet(f"**{', '.join(silent)}:** nothing is known.")])


def facts_of(facts: Facts) -> Iterator[str]:
    """Yield each fact that is known, in words."""
    if (fact := facts.searches) is not None:
        yield f"{SEARCHES[fact.value]} ({source(fact)})"
    if (hint := facts.heeds_hint) is not None:
        yield f"{'heeds' if hint.value else 'does not heed'} our hint to keep the four loaded ({source(hint)})"
    if (kept := facts.keeps_loaded) is not None:
        written = json.dumps(kept.value).strip("{}")
        yield f"keeps the tools of an entry with `{written}` loaded ({source(kept)})"
    if (calls := facts.side_by_side) is not None:
        yield f"{SIDE_BY_SIDE[calls.value]} ({source(calls)})"
    if (changes := facts.heeds_changes) is not None:
        yield f"{'reads' if changes.value else 'does not read'} a list again that has changed ({source(changes)})"
    if (limit := facts.limit) is not None:
        yield f"takes {limit.value.tools} tools, more are {limit.value.above} ({source(limit)})"


def source(fact: Fact[Any]) -> str:
    """Return where a fact is from: a link, or which version was seen."""
    return f"[source]({fact.source})" if fact.source.startswith("https://") else f"seen with {fact.source}"


def main() -> None:
    """Rewrite the files below the working directory, and say which were different."""
    for name, generated in parts().items():
        file = Path(name)
        before = file.read_text(encoding="utf-8")
        after = rewrite(before, generated)
        if after != before:
            file.write_text(after, encoding="utf-8")
            sys.stdout.write(f"wrote: {name}\n")


if __name__ == "__main__":
    main()
