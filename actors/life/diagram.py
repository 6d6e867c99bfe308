"""The lifecycle as a Mermaid diagram, drawn from `step` itself, so that picture and code cannot part.

`python -m supervisor.reference.documents --write` puts it into the documentation; a test compares the copy there.
"""

from __future__ import annotations

from msgspec.structs import replace

from actors.life import events as ev
from actors.life.lifecycle import step
from actors.life.states import Life, State, Timer

Arrow = tuple[str, str, str]


def events(incarnation: int) -> tuple[ev.Event, ...]:
    """One of each kind of event; those of a process belong to `incarnation`."""
    return (
        ev.Wake(),
        ev.Sleep(),
        ev.Restart(),
        ev.Stop(),
        ev.Spawned(incarnation),
        ev.SpawnRefused(incarnation, "reason"),
        ev.SpawnRefused(incarnation, "reason", permanent=True),
        ev.SpawnRefused(incarnation, "reason", scarce=True),
        ev.Agreed(incarnation),
        ev.Agreed(incarnation, known=True),
        ev.NotAgreed(incarnation, "reason"),
        ev.Barred(incarnation, "reason"),
        ev.Fallback(incarnation),
        ev.Discovered(incarnation),
        ev.Violated(incarnation, "reason"),
        ev.Away(incarnation, "reason"),
        ev.Expired(incarnation),
        ev.Drained(incarnation),
        ev.Exited(incarnation, "reason"),
        ev.Exited(incarnation, "reason", normal=True),
        ev.Exited(incarnation, "reason", renewable=True),
        ev.Prolonged(incarnation, Timer.HANDSHAKE, 1.0),
        ev.Prolonged(incarnation, Timer.IDLE, 1.0),
        ev.Admitted(1.0),
        ev.BackoffOver(),
        ev.GaveUp(),
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
