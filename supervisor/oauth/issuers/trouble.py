"""What may go wrong between us and an authorization server, for the operator. Pure.

Reasons are ours: of what others wrote they hold at most a word that passed a strict pattern.
"""

from __future__ import annotations


class OAuthTrouble(Exception):
    """Something that ends a login, or a renewal of tokens. `reason` is for the operator and free of secrets."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unreached(OAuthTrouble):
    """Nobody could be asked, or only somebody who is down: that says nothing about the tokens."""


class IssuerRefused(OAuthTrouble):
    """The authorization server says no. `code` is its word for it (RFC 6749 5.2), empty if it has none."""

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.code = code
