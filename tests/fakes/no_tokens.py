"""A place for tokens in which there are none."""

from __future__ import annotations

from supervisor.identity.tokens import SavedToken


class NoTokens:
    """Implements `supervisor.identity.tokens.TokenStore`."""

    def save_token(self, token: SavedToken) -> None:
        raise AssertionError("nobody makes one")

    def forget_token(self, digest: bytes) -> None:
        raise AssertionError("nobody makes one")

    async def secure(self) -> bool:
        raise AssertionError("nobody makes one")
