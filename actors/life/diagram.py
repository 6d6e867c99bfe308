"""The lifecycle as a Mermaid diagram, drawn from `step` itself, so that picture and code cannot part.

`python -m actors.life.diagram` prints it; a test compares the copy in the documentation.
"""

from __future__ import annotations

import sys

from msgspec.structs import replace

from actors.life import lifecycle as lc

Arrow = tuple[str, str, str]


def events(incarnation: int) -> tuple[lc.Event, ...]:
    """One of each kind of event; those of a process belong to `incarnation`."""
    return (
        lc.Wake(),
        lc.Sleep(),
        lc.Restart(),
        lc.Stop(),
        lc.Spawned(incarnation),
        lc.SpawnRefused(incarnation, "reason"),
        lc.SpawnRefused(incarnation, "reason", permanent=True),
        lc.SpawnRefused(incarnation, "reason", scarce=True),
        lc.Greeted(incarnation),
        lc.Greeted(incarnation, known=True),
        lc.Rejected(incarnation, "reason"),
        lc.Fallback(incarnation),
        lc.Listed(incarnation),
        lc.Violated(incarnation, "reason"),
        lc.Expired(incarnation),
        lc.Drained(incarnation),
        lc.Exited(incarnation, "reason"),
        lc.Exited(incarnation, "reason", normal=True),
        lc.BackoffOver(),
        lc.GaveUp(),
    )


def arrows() -> list[Arrow]:
    """Return each (state, event, next state) that can happen, where the state changes: a walk over all lives."""
    found: set[Arrow] = set()
    todo = [lc.Life()]
    seen: set[lc.Life] = set()
    while todo:
        life = todo.pop()
        for event in events(life.incarnation):
            after, _ = lc.step(life, event)
            if after.state is not life.state:
                found.add((life.state.value, type(event).__name__, after.state.value))
            known = replace(after, incarnation=1)
            if known not in seen:
                seen.add(known)
                todo.append(known)
    return sorted(found)


def mermaid() -> str:
    """Return the diagram: one line per pair of states, with all events that lead from one to the other."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for before, event, after in arrows():
        pairs.setdefault((before, after), []).append(event)
    lines = ["stateDiagram-v2", f"    [*] --> {lc.State.DORMANT}"]
    lines += [f"    {before} --> {after}: {', '.join(names)}" for (before, after), names in sorted(pairs.items())]
    lines.append(f"    {lc.State.STOPPED} --> [*]")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(mermaid() + "\n")
