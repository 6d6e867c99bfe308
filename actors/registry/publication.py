"""Who waits until what the registry was told of a server can be searched and called. Pure but for the replies.

Facts of a server come before the ask of whoever ordered something of it, in the same mailbox. So the ask knows which of
them it waits for: all that came until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from actors.kit import Reply


class Publication:
    """Counts, by server, what was told and what of that is published."""

    def __init__(self, servers: Iterable[str]) -> None:
        self._told = dict.fromkeys(servers, 1)
        self._published: dict[str, int] = {}
        self._waiting: dict[str, list[tuple[int, Reply[None]]]] = {}

    def tell(self, server: str) -> None:
        self._told[server] = self._told.get(server, 0) + 1

    def versions(self, servers: Iterable[str]) -> dict[str, int]:
        """Return what is told of these servers now, for `publish` once it is published."""
        return {server: self._told.get(server, 0) for server in servers}

    def publish(self, told: Mapping[str, int]) -> None:
        """So much is published; answer those who waited for that."""
        for server, count in told.items():
            self._published[server] = count
            for wanted, reply in self._waiting.pop(server, ()):
                if wanted <= count:
                    reply.answer(None)
                elif not reply.settled:
                    self._waiting.setdefault(server, []).append((wanted, reply))

    def forget(self, server: str) -> None:
        """Count no more of a server that is gone, if that is published and nobody waits for it."""
        if self._told.get(server) == self._published.get(server) and server not in self._waiting:
            self._told.pop(server, None)
            self._published.pop(server, None)

    def wait(self, server: str, reply: Reply[None]) -> None:
        """Answer when all that is told of a server so far is published."""
        wanted = self._told.get(server, 0)
        if self._published.get(server, 0) >= wanted:
            reply.answer(None)
        else:
            others = [each for each in self._waiting.get(server, ()) if not each[1].settled]
            self._waiting[server] = [*others, (wanted, reply)]
