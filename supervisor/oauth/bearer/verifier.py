"""Finds out what the tokens of identity providers grant, and remembers that for a minute at most.

- What is remembered, or signed by a key that is here, is known at once. Nobody waits but for an answer that is needed.
- A token that two requests show is asked about once. So much is asked about at a time, and for one address as much
  as it leaves free (`Quota`): whoever shows wrong tokens cannot keep others from having theirs checked.
- What is remembered of good tokens and of wrong ones has bounds of its own, so that wrong ones push out none that
  is good.
- A token whose provider is not configured costs no request. One that is no JWT is shown to one provider alone, the
  first that is asked about tokens: any other could use it.
"""

from __future__ import annotations

import hashlib
import logging
import math
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import trio

from actors.errors import ProviderUnavailable
from actors.kit import Latest
from actors.kit.fairness.quota import Quota
from supervisor.host.workbench import beside
from supervisor.identity.people import Issuer
from supervisor.identity.requester import TokenGrant, TokenRefused, UnknownKey, network_of
from supervisor.oauth.bearer.claims import PublicKey, check_jwt, named_issuer, read_introspection, read_keys
from supervisor.oauth.issuers.fetch import Fetcher, published_issuer
from supervisor.oauth.issuers.issuer import FORM
from supervisor.oauth.issuers.metadata import IssuerMetadata, OAuthTrouble
from supervisor.servers.deployment import Deployment

# One identity provider: what it publishes, its keys, and its answers about tokens.
#
# - Nothing is asked but addresses of the configured provider: where a token says it comes from is compared, never
#   fetched.
# - Keys are kept for an hour and then read again, beside the requests that go on with them. Where the provider cannot
#   be reached they serve for a day. What came back as no keys takes none away.
# - A token may be signed by a key that is new: then the keys are read again, but once in half a minute, whatever came
#   back the last time. There is one such reading at a time, and only who needs its outcome waits for it.

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


T = TypeVar("T")

GOOD_S: Final = 60.0
WRONG_S: Final = 5.0
MAX_GOOD: Final = 10_000
MAX_WRONG: Final = 4096
MAX_QUESTIONS: Final = 64
"""Tokens that are asked about at a time."""


class _Kept(msgspec.Struct, frozen=True):
    """What is remembered of a token: what it grants, or why it is refused; until when, by `trio.current_time()`."""

    verdict: TokenGrant | TokenRefused
    until: float


class _Question(msgspec.Struct, eq=False):
    """A token that is being asked about."""

    done: trio.Event
    verdict: TokenGrant | TokenRefused | ProviderUnavailable | None = None


class Verifier:
    """`clock` gives unix seconds; what is asked runs in `nursery`."""

    def __init__(self, deployment: Latest[Deployment], clock: Callable[[], float], nursery: trio.Nursery) -> None:
        self._deployment = deployment
        self._clock = clock
        self._nursery = nursery
        self._issuers: tuple[Issuer, ...] = ()
        self._providers: dict[str, IdentityProvider] = {}
        self._good: OrderedDict[bytes, _Kept] = OrderedDict()
        self._wrong: OrderedDict[bytes, _Kept] = OrderedDict()
        self._questions: dict[bytes, _Question] = {}
        self._quota = Quota(MAX_QUESTIONS)

    def recall(self, token: str) -> TokenGrant | TokenRefused | None:
        """Return what a token grants, or why it is refused, as far as nobody has to be asked; else None."""
        self._follow()
        digest, now = digest_of(token), trio.current_time()
        for kept in (self._good.get(digest), self._wrong.get(digest)):
            if kept is not None and now < kept.until:
                return kept.verdict
        try:
            provider = self._provider(token)
            if named_issuer(token) is None:
                return None
            grant = provider.check(token, self._clock())
        except TokenRefused as refused:
            return refused
        if grant is None or provider.issuer.asks:
            return None
        self._remember(digest, grant)
        return grant

    async def ask(self, token: str, address: str) -> TokenGrant:
        """Return what a token grants that is not remembered (`recall`); `address` is whence it came.

        Raises `TokenRefused`, and `ProviderUnavailable` where nobody can be asked.
        """
        self._follow()
        digest = digest_of(token)
        question = self._questions.get(digest)
        if question is None:
            holder = network_of(address)
            if not self._quota.has_room(holder):
                raise ProviderUnavailable("too many tokens are being asked about; try again", retry_after_s=1.0)
            question = self._questions[digest] = _Question(trio.Event())
            self._quota.add(holder)
            self._nursery.start_soon(self._answer, token, question, holder)
        await question.done.wait()
        verdict = question.verdict
        if isinstance(verdict, TokenGrant):
            return verdict
        raise verdict if verdict is not None else ProviderUnavailable("the daemon is ending")

    async def is_revoked(self, token: str) -> bool:
        """Ask a provider again about a token that it granted; where it cannot be asked, that goes on."""
        try:
            await self.ask(token, "")
        except TokenRefused:
            return True
        except ProviderUnavailable:
            return False
        return False

    def is_due(self, token: str) -> bool:
        """Say whether what a provider said of a token is so old that it should be asked again."""
        kept = self._good.get(digest_of(token))
        return kept is None or trio.current_time() >= kept.until

    async def _answer(self, token: str, question: _Question, holder: str) -> None:
        digest, issuers = digest_of(token), self._issuers
        try:
            verdict = question.verdict = await self._verdict(token)
            if self._issuers is issuers:
                self._remember(digest, verdict)
        finally:
            self._quota.remove(holder)
            del self._questions[digest]
            question.done.set()

    async def _verdict(self, token: str) -> TokenGrant | TokenRefused | ProviderUnavailable:
        try:
            return await self._check(token, self._provider(token))
        except (TokenRefused, ProviderUnavailable) as error:
            return error.with_traceback(None)
        except Exception:
            log.exception("a bug in the check of a token")
            return ProviderUnavailable("internal error; the daemon's log says more")

    async def _check(self, token: str, provider: IdentityProvider) -> TokenGrant:
        grant = None
        if named_issuer(token) is not None:  # a forged one costs its provider no question
            grant = provider.check(token, self._clock()) or await provider.check_with_new_keys(token, self._clock())
            if not provider.issuer.asks:
                return grant
        told = await provider.introspect(token, self._clock())
        if grant is not None and told.subject != grant.subject:
            raise TokenRefused("its provider says that it is of somebody else")
        return told

    def _provider(self, token: str) -> IdentityProvider:
        """Return who can tell of a token. Raises `TokenRefused` if nobody can."""
        named = named_issuer(token)
        if named is None:
            provider = next((each for each in self._providers.values() if each.issuer.asks), None)
        else:
            provider = self._providers.get(named)
        if provider is None:
            raise TokenRefused("it is of no identity provider that is configured")
        return provider

    def _remember(self, digest: bytes, verdict: TokenGrant | TokenRefused | ProviderUnavailable) -> None:
        if isinstance(verdict, TokenGrant):
            left_s = verdict.expires_at - self._clock()
            _put(self._good, digest, _Kept(verdict, trio.current_time() + min(GOOD_S, left_s)), MAX_GOOD)
        elif isinstance(verdict, TokenRefused) and not isinstance(verdict, UnknownKey):
            self._good.pop(digest, None)
            _put(self._wrong, digest, _Kept(verdict, trio.current_time() + WRONG_S), MAX_WRONG)

    def _follow(self) -> None:
        """Know the providers of the newest configuration; nothing is remembered of what others said."""
        issuers = self._deployment.value.settings.identity.issuers
        if issuers == self._issuers:
            return
        before = {provider.issuer: provider for provider in self._providers.values()}
        self._issuers = issuers
        self._providers = {each.issuer: before.get(each) or IdentityProvider(each, self._nursery) for each in issuers}
        self._good.clear()
        self._wrong.clear()


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _put(kept: OrderedDict[bytes, T], key: bytes, value: T, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
