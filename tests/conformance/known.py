"""Scored scenarios that pass directly and do not pass through the door, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from tests.conformance.suites import Era

NO_SAMPLING = "servers cannot ask for samples yet"
NO_INCOMPLETE_RESULTS = "incomplete results are not passed on yet"
NO_QUESTIONS = "what a modern client is asked is not made of a legacy server's requests yet"
NO_REQUESTS = "what a legacy client is asked is not made of incomplete results yet"
INCOMPLETE = tuple(
    f"input-required-result-{name}"
    for name in (
        "basic-elicitation",
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
ASKING = (
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
)

REASONS: Mapping[tuple[str, Era], Mapping[str, str]] = {
    ("2025-11-25", "legacy"): {"tools-call-sampling": NO_SAMPLING},
    ("0.1.16", "legacy"): {"tools-call-sampling": NO_SAMPLING},
    ("2026-07-28", "modern"): dict.fromkeys(INCOMPLETE, NO_INCOMPLETE_RESULTS),
    ("2026-07-28", "legacy"): dict.fromkeys(("server-stateless", *INCOMPLETE), NO_QUESTIONS),
    ("2025-11-25", "modern"): dict.fromkeys(ASKING, NO_REQUESTS),
    ("0.1.16", "modern"): dict.fromkeys(ASKING, NO_REQUESTS),
}
"""By the suite, and the era of the server behind the door."""
