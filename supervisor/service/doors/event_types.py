"""Events of a server that are sent to an address (SEP-3415, "Webhook-Based Delivery"): who may ask for that. Pure.

A server tells such subscriptions apart by who subscribed, and all whom the daemon serves with one login are one to it:
each of them could end what another has subscribed to, or give it another secret. So only who has the login of a server
to themselves, or where there are no users, is told of it, and may ask for it.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.codes import FORBIDDEN
from actors.errors import SupervisorError
from actors.launch import is_own
from actors.principal import LOCAL
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.servers.launches.names import LaunchNames
from supervisor.service.client import Client

LIST: Final = "events/list"
WEBHOOKS: Final = frozenset({"events/subscribe", "events/unsubscribe"})
MODE: Final = "webhook"
_texts: Final = msgspec.json.Decoder(list[str])


class LoginShared(SupervisorError, code=FORBIDDEN, kind="forbidden"):
    """Events of the server are sent to no address here, as others use the server by the same login: it could not tell
    whose subscription is whose."""


def shares_login(launches: LaunchNames, server: str, client: Client) -> bool:
    """Say whether others whom a client must not disturb are the same as it to a server."""
    return client.principal != LOCAL and not is_own(launches.of(server, client.principal))


def refusal(server: str) -> LoginShared:
    text = f"server {server!r} is used by others by the same login, so its events are sent to no address"
    return LoginShared(f"{text}; poll or stream them", details={"reason": "shared_login"})


def without_webhooks(body: bytes) -> bytes:
    """Return the result of `events/list` without this way of delivery; a type that has no other is left out."""
    entries = json.read_or(json.ELEMENTS, json.at(body, "events"), None)
    if entries is None:
        return body
    return encode({**json.members(body), "events": [kept for each in entries if (kept := _without(each)) is not None]})


def _without(entry: msgspec.Raw) -> msgspec.Raw | None:
    modes = json.read_or(_texts, json.at(entry, "delivery"), [])
    if MODE not in modes:
        return entry
    left = [mode for mode in modes if mode != MODE]
    return msgspec.Raw(encode({**json.members(entry), "delivery": left})) if left else None
