"""One discover, searched and answered at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from actors.catalogue.snapshot import Catalogue
from actors.messages import ServerStatus
from actors.search.page import Prefer
from supervisor.metatools.arguments import Discover
from supervisor.metatools.discovery import DiscoverySettings, build_answer, cut, needs_of, search
from supervisor.metatools.servers import SERVERS_TOKENS, roll

Clock = Callable[[], float]


def discover_at_once(
    seen: Catalogue,
    statuses: Mapping[str, ServerStatus],
    wanted: Discover,
    settings: DiscoverySettings,
    clock: Clock,
    prefer: Prefer | None = None,
) -> dict[str, Any]:
    """Search and answer at once; see `search` and `build_answer`. It says nothing of when."""
    servers = partial(roll, seen, statuses, {}, SERVERS_TOKENS, usable=True)
    return build_answer(
        seen,
        statuses,
        [search(seen, need, clock, None, prefer) for need in needs_of(cut(wanted, settings))],
        settings,
        0.0,
        servers,
    )
