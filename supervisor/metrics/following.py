"""Counts what the feed of events tells of: changes of tools, and questions that ended. Nobody tells of it twice."""

from __future__ import annotations

from actors.kit import Feed
from actors.registry.happening import Happening
from supervisor.metrics.meters import Meters

TOOLS_CHANGED = "tools_changed"
QUESTION_ENDED = "elicitation_ended"


async def follow(feed: Feed[Happening], meters: Meters) -> None:
    """Count for ever. What the feed has forgotten before its turn, over a thousand events, is not counted."""
    number = feed.newest
    while True:
        number, _, events = await feed.after(number)
        for event in events:
            count(event, meters)


def count(event: Happening, meters: Meters) -> None:
    data = event.data
    if event.type == TOOLS_CHANGED:
        meters.on_changes(*(len(data.get(name, ())) for name in ("added", "removed", "changed")))
    elif event.type == QUESTION_ENDED:
        meters.on_question(data["kind"], data["action"])
