"""Tools that a server lists and that cannot be called through us, and why. Pure."""

from __future__ import annotations

from typing import Final

from actors.catalogue.offer import Offer
from actors.errors import UnknownTool
from actors.protocol.versions import Era
from supervisor.metatools.texts import clean

WHY: Final[dict[Era, str]] = {
    "legacy": "can only be run as a task, and tasks do not get through here",
    "modern": "marks its parameters for headers wrongly, and cannot be called over HTTP",
}
"""Servers of each era have tools that are left out for one reason; see `Offer.barred`."""


def barred(server: str, offer: Offer, name: str) -> UnknownTool | None:
    """Return the error for a tool that was left out of an offer; None for any other."""
    if name not in offer.barred:
        return None
    return UnknownTool(f"{clean(name[:100])!r} of server {server!r} {WHY[offer.era]}", server=server)
