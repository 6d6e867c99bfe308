"""The goals of reliability with the figures that were measured last, as the documentation lists them."""

from __future__ import annotations

from benchmarks.goals.kept import Kept, kept
from supervisor.reference.configuration import bullet


def goal_list() -> str:
    """Return an item for each goal: what is promised, when and on what it was measured, and each figure."""
    return "\n".join(map(_item, kept().values())) or "Nothing was measured yet."


def _item(run: Kept) -> str:
    size = "" if run.scale == "full" else ", in its small form"
    head = bullet(f"**{run.goal}** {run.what}. Measured on {run.on}{size}, on {run.machine}.")
    return "\n".join((head, *(f"  {bullet(str(figure))}" for figure in run.figures)))
