"""The table of subscriptions whose events are posted to an address."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from actors.transport.redaction import Confidential
from supervisor.store.write_behind import WriteBehind

_SAVE: Final = "INSERT OR REPLACE INTO webhooks (id, expires_at, cursor, sealed) VALUES (?, ?, ?, ?)"


class SavedWebhook(Confidential, Struct, frozen=True, kw_only=True, array_like=True):
    """One subscription, until `expires_at` (unix s). `cursor`: behind which it goes on. The rest of it is `sealed`,
    with its id."""

    id: str
    expires_at: float
    cursor: str
    sealed: bytes


class WebhookTable(WriteBehind):
    """What the store keeps of them; see `Store`."""

    def save_webhook(self, saved: SavedWebhook) -> None:
        self._put(("webhook", saved.id), (_SAVE, astuple(saved)))

    def forget_webhook(self, id_: str) -> None:
        self._put(("webhook", id_), ("DELETE FROM webhooks WHERE id = ?", (id_,)))

    async def load_webhooks(self, now: float) -> list[SavedWebhook] | None:
        """Return those that have not expired, None if the disk does not say; the others are removed. A checkpoint."""
        query, tidy = "SELECT * FROM webhooks WHERE expires_at > ?", "DELETE FROM webhooks WHERE expires_at <= ?"
        return await self._read(self._database.load, SavedWebhook, query, (now,), tidy)
