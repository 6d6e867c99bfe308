"""What clients ask for of a subscription whose events are posted, and what is kept of it (SEP-3415). Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from actors.errors import InvalidArguments, MalformedRequest
from actors.principal import LOCAL, Principal
from actors.protocol.wire import json
from actors.transport.http.addresses import plain
from actors.transport.redaction import Confidential
from supervisor.events.signing import PREFIX
from supervisor.identity.people import Role
from supervisor.service.events.errors import PrincipalNeeded, UnsupportedDelivery
from supervisor.service.events.limits import DEFAULT_TTL_S, MAX_TTL_S, MIN_TTL_S, ROTATION_S
from supervisor.service.events.requests import Wanted
from supervisor.service.events.types import WEBHOOK, Viewpoint

MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64
"""Of what is behind `whsec_` ("Secret generation")."""


class _Address(Confidential, msgspec.Struct, frozen=True):
    url: str
    mode: str = WEBHOOK
    secret: str = ""


class Subscribe(Confidential, Wanted, frozen=True, rename="camel", kw_only=True):
    """The params of `events/subscribe`, and of `events/unsubscribe`."""

    delivery: _Address
    ttl_ms: int | msgspec.UnsetType | None = msgspec.UNSET


_subscribe: Final = msgspec.json.Decoder(Subscribe)


class Terms(Confidential, msgspec.Struct, frozen=True, kw_only=True):
    """What a subscription is, as it is kept. `before` is the secret that was replaced at `rotated_at` (unix s).

    `role` is that of the credential with which it was begun: the most that it is for.
    """

    principal: Principal
    role: Role = "member"
    url: str
    name: str
    arguments: msgspec.Raw
    secret: str
    before: str = ""
    rotated_at: float = 0.0

    def secrets(self, now: float) -> list[str]:
        """Return what is signed by, the newest first."""
        return [self.secret, self.before] if self.before and now < self.rotated_at + ROTATION_S else [self.secret]

    def rotated(self, secret: str, now: float) -> Terms:
        if secret == self.secret:
            return self
        return msgspec.structs.replace(self, secret=secret, before=self.secret, rotated_at=now)


def granted_s(ttl_ms: int | msgspec.UnsetType | None) -> float:
    """Return for how long a subscription is granted whose client suggests so much (null: for ever).

    None is granted for ever: what nobody refreshes must end by itself.
    """
    if ttl_ms is None:
        return MAX_TTL_S
    if ttl_ms is msgspec.UNSET:
        return DEFAULT_TTL_S
    return min(max(ttl_ms, MIN_TTL_S * 1000), MAX_TTL_S * 1000) / 1000


def read_subscribe(at: Viewpoint, params: msgspec.Raw, method: str) -> Subscribe:
    """Read what somebody asks for by a method.

    Raises `PrincipalNeeded`, `MalformedRequest`, `UnsupportedDelivery`, and `InvalidArguments` for a bad address.
    """
    if at.principal == LOCAL:
        raise PrincipalNeeded
    try:
        wanted = json.read(_subscribe, params)
    except json.UnreadableJson as error:
        raise MalformedRequest(f"{method}: {error}") from None
    if wanted.delivery.mode != WEBHOOK:
        text = f"{method} is for the delivery mode {WEBHOOK!r} alone"
        raise UnsupportedDelivery(text, feature="deliveryMode", value=wanted.delivery.mode[:100])
    parts = plain(wanted.delivery.url)
    if parts is None or parts.scheme != "https" or parts.fragment:
        raise InvalidArguments("'delivery.url' is not a plain address of https, such as https://example.com/hooks/1")
    return wanted


def check_secret(secret: str) -> None:
    """Raise `InvalidArguments` for what is no secret of Standard Webhooks."""
    try:
        size = len(base64.b64decode(secret.removeprefix(PREFIX), validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if not (secret.startswith(PREFIX) and MIN_SECRET_BYTES <= size <= MAX_SECRET_BYTES):
        text = f"'delivery.secret' is not {PREFIX} and {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} random bytes in base64"
        raise InvalidArguments(text)
