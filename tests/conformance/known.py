"""Scored scenarios that pass directly and cannot pass through the door, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.stage import Doors, Transport
from tests.conformance.suites import Behind

OWN_KEYS = "a legacy server's questions have no keys, so theirs are ours; the scenario wants the reference's"
TAKE_TURNS = (
    "on one pipe a call waits while another one has questions, since nobody could tell whose the next one is; "
    "the suite never answers those of the scenarios before"
)

BEFORE_LEGACY = {"input-required-result-basic-elicitation": OWN_KEYS}
ON_ONE_PIPE = tuple(
    f"input-required-result-{name}"
    for name in (
        "basic-sampling",
        "basic-list-roots",
        "request-state",
        "multiple-input-requests",
        "multi-round",
        "non-tool-request",
        "result-type",
        "tampered-state",
        "capability-check",
    )
)


def takes_turns(suite: str, behind: Behind, transport: Transport) -> bool:
    """Return whether what a scenario leaves behind keeps others waiting."""
    return (suite, behind, transport) == ("2026-07-28", "legacy", "stdio")


def reasons(suite: str, behind: Behind, transport: Transport, doors: Doors) -> Mapping[str, str]:
    """Return them by scenario, for a suite at the door of a server of this era."""
    if (suite, behind) != ("2026-07-28", "legacy"):
        return {}
    waits = doors == "one" and takes_turns(suite, behind, transport)
    return BEFORE_LEGACY | (dict.fromkeys(ON_ONE_PIPE, TAKE_TURNS) if waits else {})
