"""The table of what people have said yes to for good."""

from __future__ import annotations

from typing import Any

from supervisor.store.call_tables import CallTables


class ConsentTable(CallTables):
    """What the store keeps of them; see `Store`."""

    def save_consent(self, consent: Any) -> None:
        """Keep one; it has `principal`, `server`, `tool`, `pinned` and `given_at`."""
        values = (consent.principal, consent.server, consent.tool, consent.pinned, consent.given_at)
        insert = ("INSERT OR REPLACE INTO consents VALUES (?, ?, ?, ?, ?)", values)
        self._put(("consent", consent.principal, consent.server, consent.tool, consent.pinned.hex()), insert)

    def forget_consent(self, consent: Any) -> None:
        forget = "DELETE FROM consents WHERE principal = ? AND server = ? AND tool = ? AND pinned = ?"
        values = (consent.principal, consent.server, consent.tool, consent.pinned)
        self._put(("consent", consent.principal, consent.server, consent.tool, consent.pinned.hex()), (forget, values))

    async def load_consents(self) -> list[tuple[str, str, str, bytes, str, float]]:
        """Return what is kept, the oldest first, as the fields of consents. A checkpoint."""
        query = "SELECT principal, server, tool, pinned, '', given_at FROM consents ORDER BY given_at"
        return await self._load(tuple[str, str, str, bytes, str, float], query)
