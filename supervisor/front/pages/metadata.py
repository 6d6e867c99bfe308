"""What is known of every tool, computed in a thread and kept until a server lists something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import trio

from actors.catalogue.metadata import Metadata, describe_all
from actors.catalogue.names.lookalikes import Doubles
from actors.catalogue.offer import Tool
from actors.catalogue.snapshot import Catalogue, Entry
from actors.kit import is_want

MAX_FINDINGS = 100
"""Of each server, on the page that lists them."""


class _Kept(msgspec.Struct, frozen=True):
    tools: tuple[Tool, ...]
    metadata: Mapping[str, Metadata]
    warnings: int
    lookalikes: Doubles


class Described:
    """The metadata of the newest catalogue that was asked about, by server and tool."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._one = trio.CapacityLimiter(1)

    async def of(self, catalogue: Catalogue) -> dict[str, Mapping[str, Metadata]]:
        """Return what is known of each tool, less for want of resources: pages must be there above all then."""
        return {name: kept.metadata for name, kept in (await self._of(catalogue)).items()}

    async def warnings(self, catalogue: Catalogue) -> dict[str, int]:
        """Return how many warnings the tools of each server have together. A checkpoint, like `of`."""
        return {name: kept.warnings for name, kept in (await self._of(catalogue)).items()}

    async def _of(self, catalogue: Catalogue) -> dict[str, _Kept]:
        async with self._one:
            stale = [entry for name, entry in catalogue.entries.items() if not self._fresh(name, entry)]
            if stale:
                try:
                    made = await trio.to_thread.run_sync(lambda: {entry.server: _describe(entry) for entry in stale})
                except (OSError, RuntimeError, MemoryError) as error:
                    if not is_want(error):
                        raise
                    made = {}
                self._kept = {name: kept for name, kept in {**self._kept, **made}.items() if name in catalogue.entries}
            return {name: self._kept[name] for name in catalogue.entries if name in self._kept}

    def _fresh(self, server: str, entry: Entry) -> bool:
        kept = self._kept.get(server)
        return kept is not None and kept.tools is entry.offer.tools and kept.lookalikes == entry.standing.lookalikes


def _describe(entry: Entry) -> _Kept:
    lookalikes = entry.standing.lookalikes
    metadata = describe_all(entry.server, entry.offer.tools, lookalikes)
    return _Kept(entry.offer.tools, metadata, sum(known.warnings for known in metadata.values()), lookalikes)


def findings(described: Mapping[str, Mapping[str, Metadata]]) -> dict[str, list[dict[str, Any]]]:
    """Return the first 100 findings of each server that has any, warnings first, then by tool."""
    rows = {
        server: [
            {"tool": tool, **msgspec.to_builtins(finding)}
            for severity in ("warning", "note")
            for tool in sorted(metadata)
            for finding in metadata[tool].findings
            if finding.severity == severity
        ][:MAX_FINDINGS]
        for server, metadata in described.items()
    }
    return {server: listed for server, listed in rows.items() if listed}
