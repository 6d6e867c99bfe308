"""What a request shows of who sends it: the header `Authorization` (RFC 6750 2.1), or, at a personal address alone, the
parameter `token`, for clients that can be told an address and nothing else. Pure.

A page cannot give the handshake of a WebSocket a header: there it is the subprotocol `mcp.auth.TOKEN`, or the parameter
`ticket` with what `/api/tickets` gave.

Whoever shows two credentials, or one in another form, has shown a wrong one: nobody guesses which was meant.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs

from msgspec import Struct

from supervisor.front.edge.fields import Fields

MAX_BYTES: Final = 16 * 1024
"""A longer one is refused before anything is made of it."""
_NAME: Final = b"authorization"
_SCHEME: Final = b"bearer"
_PARAMETER: Final = "token"
TICKET: Final = "ticket"
_SUBPROTOCOLS: Final = b"sec-websocket-protocol"
_SUBPROTOCOL: Final = b"mcp.auth."
_MAX_FIELDS: Final = 20


class Credential(Struct, frozen=True):
    """`token` is empty where a credential was shown that is none; `missing`: none was shown at all."""

    token: str = ""
    missing: bool = False


def read_credential(fields: Fields, query: bytes = b"", *, is_websocket: bool = False) -> Credential:
    """Return what a request shows: its header fields, and the query of a personal address."""
    line = fields.lines.get(_NAME)
    if is_websocket and (offered := _tokens_among_subprotocols(fields)):
        alone = len(offered) == 1 and line is None and not (query and _given_in(query, _PARAMETER) != [])
        return Credential(_text(offered[0])) if alone else Credential()
    if query and (given := _given_in(query, _PARAMETER)) != []:
        return Credential(given[0]) if given is not None and len(given) == 1 and line is None else Credential()
    if line is None:
        return Credential(missing=True)
    scheme, _, token = line.partition(b" ")
    if _NAME in fields.doubled or scheme.lower() != _SCHEME:
        return Credential()
    return Credential(_text(token))


def read_ticket(target: bytes) -> str:
    """Return the ticket in the address of a handshake; empty if there is none, or more than one."""
    given = _given_in(target.partition(b"?")[2], TICKET)
    return given[0] if given is not None and len(given) == 1 else ""


def read_cookie(fields: Fields, name: str) -> str:
    """Return the cookie of this name; empty if there is none, or more than one (RFC 6265 5.4)."""
    pairs = (pair.strip().partition(b"=") for pair in fields.lines.get(b"cookie", b"")[:MAX_BYTES].split(b";"))
    values = [value for key, _, value in pairs if key == name.encode()]
    return values[0].decode("ascii") if len(values) == 1 and values[0].isascii() else ""


def _text(token: bytes) -> str:
    return token.strip().decode("ascii") if token.isascii() and len(token) <= MAX_BYTES else ""


def _tokens_among_subprotocols(fields: Fields) -> list[bytes]:
    offered = (each.strip() for each in fields.lines.get(_SUBPROTOCOLS, b"").split(b","))
    return [each.removeprefix(_SUBPROTOCOL) for each in offered if each.startswith(_SUBPROTOCOL)]


def _given_in(query: bytes, parameter: str) -> list[str] | None:
    """Return every value of a parameter of a query, None for one that cannot be read."""
    try:
        fields = parse_qs(query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        return None
    return [token if token.isascii() and len(token) <= MAX_BYTES else "" for token in fields.get(parameter, [])]
