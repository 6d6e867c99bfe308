"""What servers publish of logins is found, and what is no document is passed over."""

from __future__ import annotations

import pytest

from supervisor.config import OAuthConfig
from supervisor.oauth.issuers.fetch import Fetcher, locate
from supervisor.oauth.issuers.metadata import Challenge
from tests.fakes.issuer_server import ISSUER, RESOURCE, IssuerServer, Reply


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"resource": 1}', b"\xff", b"[" * 30_000])
async def test_what_is_no_document_is_none(body: bytes) -> None:
    async with IssuerServer().running() as server:
        there = f"{server.base}/mcp"
        assert (await locate(Fetcher(there), there, Challenge(), OAuthConfig())).issuer.revocation_endpoint
        server.pages[RESOURCE] = server.pages[ISSUER] = Reply(body)
        assert not (await locate(Fetcher(there), there, Challenge(), OAuthConfig())).issuer.revocation_endpoint
