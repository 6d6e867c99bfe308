"""An audit that keeps what it is told."""

from __future__ import annotations

from supervisor.identity.audit import Outcome
from supervisor.identity.requester import ORIGIN, RequestOrigin


class KeptAudit:
    """Implements `supervisor.identity.audit.Audit`: `notes` has action, target, outcome and detail of each."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, str, str]] = []
        self.origins: list[RequestOrigin | None] = []

    def note(
        self,
        action: str,
        target: str = "",
        *,
        outcome: Outcome = "done",
        detail: str = "",
        origin: RequestOrigin | None = None,
    ) -> None:
        """Keep it."""
        self.notes.append((action, target, outcome, detail))
        self.origins.append(origin or ORIGIN.get())

    tally = note
