"""Grants on the disk open where they belong, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from actors.principal import LOCAL, Principal
from supervisor.oauth.accounts import Vault
from supervisor.oauth.issuers.issuer import Grant, OAuthClient, Tokens
from supervisor.oauth.issuers.metadata import IssuerMetadata
from supervisor.store import SavedGrant

GRANT = Grant(
    server="https://a.example/mcp",
    issuer=IssuerMetadata(issuer="https://b.example", token_endpoint="https://b.example/token"),
    resource="https://a.example/mcp",
    client=OAuthClient(id="x", secret="hidden-1", method="client_secret_basic"),
    tokens=Tokens(access="hidden-2", refresh="hidden-3", expires_at=5.0),
    scope=("read",),
)


def test_what_was_sealed_opens() -> None:
    vault = Vault(b"k" * 32)
    saved = vault.seal(LOCAL, "far", GRANT)
    assert vault.open(saved) == GRANT
    assert vault.seal(LOCAL, "far", GRANT).sealed != saved.sealed
    assert b"hidden" not in saved.sealed
    assert Vault(b"l" * 32).open(saved) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda saved: replace(saved, principal=Principal("another")),
        lambda saved: replace(saved, server="other"),
        lambda saved: replace(saved, issuer="https://c.example"),
        lambda saved: replace(saved, resource="https://a.example/other"),
        lambda saved: replace(saved, sealed=saved.sealed[:-1] + bytes([saved.sealed[-1] ^ 1])),
        lambda saved: replace(saved, sealed=b""),
    ],
)
def test_what_was_put_elsewhere_does_not(change: Callable[[SavedGrant], SavedGrant]) -> None:
    vault = Vault(b"k" * 32)
    assert vault.open(change(vault.seal(LOCAL, "far", GRANT))) is None


def test_nothing_secret_is_in_what_is_shown() -> None:
    shown = f"{GRANT!r} {GRANT.client!r} {GRANT.tokens!r} {Vault(b'k' * 32).seal(LOCAL, 'far', GRANT)!r}"
    assert "hidden" not in shown


@pytest.mark.parametrize(
    ("life_s", "ahead_s"), [(3600.0, 60.0), (300.0, 30.0), (20.0, 5.0), (5.0, 2.5), (1.0, 0.5), (0.0, 0.0)]
)
def test_tokens_are_renewed_ahead_by_half_of_their_life_at_most(life_s: float, ahead_s: float) -> None:
    assert Tokens(access="x", issued_at=1000.0, expires_at=1000.0 + life_s).ahead_s == ahead_s


def test_tokens_have_never_more_time_left_than_they_were_issued_for() -> None:
    tokens = Tokens(access="x", issued_at=1000.0, expires_at=1060.0)
    assert [tokens.left_s(now) for now in (1000.0, 1050.0, 1070.0, -7200.0)] == [60.0, 10.0, -10.0, 60.0]
    assert Tokens(access="x").left_s(1e9) == math.inf
