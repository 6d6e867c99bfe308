"""Tools that a server lists and that cannot be called through us, and why. Pure."""

from __future__ import annotations

from typing import Final

from actors.catalogue.offer import Offer
from actors.errors import UnknownTool
from supervisor.metatools.texts import clean

WHY: Final = "marks its parameters for headers wrongly, and cannot be called over HTTP"
"""The one reason for which tools are left out, of servers of the modern era; see `Offer.barred`."""


def barred(server: str, offer: Offer, name: str) -> UnknownTool | None:
    """Return the error for a tool that was left out of an offer; None for any other."""
    if name not in offer.barred or offer.era == "legacy":
        return None
    return UnknownTool(f"{clean(name[:100])!r} of server {server!r} {WHY}", server=server)
