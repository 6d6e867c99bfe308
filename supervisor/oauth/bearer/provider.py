"""One identity provider: what it publishes, its keys, and its answers about tokens.

- Nothing is asked but addresses of the configured provider: where a token says it comes from is compared, never
  fetched.
- Keys are kept for an hour and then read again, beside the requests that go on with them. Where the provider cannot be
  reached they serve for a day. What came back as no keys takes none away.
- A token may be signed by a key that is new: then the keys are read again, but once in half a minute, whatever came
  back the last time. There is one such reading at a time, and only who needs its outcome waits for it.
"""

from __future__ import annotations

import logging
import math
from base64 import b64encode
from functools import partial
from typing import Final
from urllib.parse import quote, urlencode

import trio

from actors.errors import ProviderUnavailable
from supervisor.host.loop.workbench import beside
from supervisor.identity.people import Issuer
from supervisor.identity.requester import TokenGrant, UnknownKey
from supervisor.oauth.bearer.claims import PublicKey, check_jwt, read_introspection, read_keys
from supervisor.oauth.issuers.discovery import published_issuer
from supervisor.oauth.issuers.fetch import Fetcher
from supervisor.oauth.issuers.issuer import FORM
from supervisor.oauth.issuers.metadata import IssuerMetadata
from supervisor.oauth.issuers.trouble import OAuthTrouble

log = logging.getLogger(__name__)

FRESH_S: Final = 3600.0
STALE_S: Final = 86_400.0
REFRESH_EVERY_S: Final = 30.0
"""Of keys, for the sake of one that is not known."""
RETRY_EVERY_S: Final = 5.0
"""Of keys, while there are none."""
ANSWER_S: Final = 5.0
"""A request waits so long at most for what its provider says."""
READING_S: Final = 20.0
WARN_EVERY_S: Final = 60.0
_LATER: Final = "the identity provider that issued the token cannot be asked about it; try again"


class IdentityProvider:
    """`nursery` lives as long as it does, for what is read beside requests. Moments are `trio.current_time()`."""

    def __init__(self, issuer: Issuer, nursery: trio.Nursery, fetcher: Fetcher | None = None) -> None:
        self.issuer = issuer
        self._nursery = nursery
        self._fetcher = fetcher or Fetcher(issuer.issuer)
        self._metadata: IssuerMetadata | None = None
        self._metadata_at = -math.inf
        self._keys: tuple[PublicKey, ...] = ()
        self._keys_at = -math.inf
        self._tried_at = -math.inf
        self._reading: trio.Event | None = None
        self._warn_from = -math.inf

    # A JWT -----------------------------------------------------------------------------------------------------------

    def check(self, token: str, now: float) -> TokenGrant | None:
        """Return what a JWT grants; None if that takes keys that are not here. `now`: unix seconds.

        Raises `TokenRefused`.
        """
        age_s = trio.current_time() - self._keys_at
        if age_s > FRESH_S and self._may_read():
            self._begin()
        if age_s > STALE_S:
            return None
        try:
            return check_jwt(token, self.issuer, self._keys, now)
        except UnknownKey:
            if self._reading is not None or self._may_read():
                return None
            raise

    async def check_with_new_keys(self, token: str, now: float) -> TokenGrant:
        """Do that with keys that are read now. Raises `TokenRefused`, and `ProviderUnavailable` where there are
        none.
        """
        if self._reading is None and self._may_read():
            self._begin()
        if self._reading is not None:
            with trio.move_on_after(ANSWER_S):
                await self._reading.wait()
        if trio.current_time() - self._keys_at > STALE_S:
            raise ProviderUnavailable(_LATER, retry_after_s=RETRY_EVERY_S)
        return check_jwt(token, self.issuer, self._keys, now)

    def _may_read(self) -> bool:
        pause_s = REFRESH_EVERY_S if self._keys else RETRY_EVERY_S
        return self._reading is None and trio.current_time() - self._tried_at >= pause_s

    def _begin(self) -> None:
        self._tried_at = trio.current_time()
        self._reading = trio.Event()
        self._nursery.start_soon(self._read, self._reading)

    async def _read(self, done: trio.Event) -> None:
        why = f"that took longer than {READING_S:g} s"
        try:
            with trio.move_on_after(READING_S):
                await self._read_keys()
                why = ""
        except OAuthTrouble as trouble:
            why = trouble.reason
        finally:
            self._reading = None
            done.set()
        if why:
            self._warn(f"its keys cannot be read: {why}")

    def _warn(self, why: str) -> None:
        """Log what is wrong with the provider, now and then: requests may come often."""
        now = trio.current_time()
        if now >= self._warn_from:
            self._warn_from = now + WARN_EVERY_S
            log.warning("the identity provider %s: %s", self.issuer.issuer, why)

    async def _read_keys(self) -> None:
        metadata = await self._find_metadata()
        page = await self._fetcher.get(metadata.jwks_uri or "")
        keys = await beside(partial(read_keys, page.body)) if page.status == 200 else ()
        if not keys:
            raise OAuthTrouble(f"what it publishes has no key that can be used (HTTP {page.status})")
        self._keys, self._keys_at = keys, trio.current_time()

    async def _find_metadata(self) -> IssuerMetadata:
        """Raises `OAuthTrouble`."""
        if self._metadata is None or trio.current_time() - self._metadata_at > FRESH_S:
            metadata = await published_issuer(self._fetcher, self.issuer.issuer)
            if metadata is None:
                raise OAuthTrouble("it publishes no metadata")
            self._metadata, self._metadata_at = metadata, trio.current_time()
        return self._metadata

    # A question ------------------------------------------------------------------------------------------------------

    async def introspect(self, token: str, now: float) -> TokenGrant:
        """Return what the provider says of a token (RFC 7662). Raises `TokenRefused`, `ProviderUnavailable`."""
        body, why = b"", f"it gave no answer within {ANSWER_S:g} s"
        with trio.move_on_after(ANSWER_S):
            try:
                body, why = await self._ask(token), ""
            except OAuthTrouble as trouble:
                why = trouble.reason
        if why:
            self._warn(f"it cannot be asked about a token: {why}")
            raise ProviderUnavailable(_LATER, retry_after_s=RETRY_EVERY_S)
        return read_introspection(body, self.issuer, now)

    async def _ask(self, token: str) -> bytes:
        about = self.issuer.introspection
        endpoint = about.endpoint or (await self._find_metadata()).introspection_endpoint
        if not endpoint:
            raise OAuthTrouble('it publishes no endpoint for that; give "endpoint" in "introspection"')
        name, secret = quote(about.client_id, safe=""), quote(about.client_secret, safe="")  # RFC 6749 2.3.1
        headers = {**FORM, "authorization": f"Basic {b64encode(f'{name}:{secret}'.encode()).decode()}"}
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        page = await self._fetcher.post(endpoint, headers, body)
        if page.status != 200:
            raise OAuthTrouble(f"it does not tell us of tokens (HTTP {page.status})")
        return page.body
