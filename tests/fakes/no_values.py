"""A place for values in which there are none."""

from __future__ import annotations

from actors.kit import Latest
from supervisor.identity.people import Tier
from supervisor.servers.deployment import Deployment
from supervisor.store import SavedValue
from supervisor.values.table import ValueTable


class _Nowhere:
    """Implements `supervisor.values.table.ValueStore`."""

    def save_value(self, value: SavedValue) -> None:
        raise AssertionError("nobody gives one")

    def forget_value(self, tier: Tier, owner: str, server: str, name: str) -> None:
        raise AssertionError("nobody takes one back")

    async def secure(self) -> bool:
        raise AssertionError("nobody waits")


def no_values() -> ValueTable:
    return ValueTable(Latest(Deployment()), _Nowhere(), b"k" * 32)
