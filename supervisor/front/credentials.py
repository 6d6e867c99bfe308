"""What a request shows of who sends it: the header `Authorization` (RFC 6750 2.1), or, at a personal address alone, the
parameter `token`, for clients that can be told an address and nothing else. Pure.

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
_MAX_FIELDS: Final = 20


class Credential(Struct, frozen=True):
    """`token` is empty where a credential was shown that is none; `missing`: none was shown at all."""

    token: str = ""
    missing: bool = False


def read_credential(fields: Fields, query: bytes = b"") -> Credential:
    """Return what a request shows: its header fields, and the query of a personal address."""
    line = fields.lines.get(_NAME)
    if query and (given := _tokens_in(query)) != []:
        return Credential(given[0]) if given is not None and len(given) == 1 and line is None else Credential()
    if line is None:
        return Credential(missing=True)
    scheme, _, token = line.partition(b" ")
    if _NAME in fields.doubled or scheme.lower() != _SCHEME or len(token) > MAX_BYTES or not token.isascii():
        return Credential()
    return Credential(token=token.strip().decode("ascii"))


def _tokens_in(query: bytes) -> list[str] | None:
    """Return every `token` of a query, None for one that cannot be read."""
    try:
        fields = parse_qs(query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        return None
    return [token if token.isascii() and len(token) <= MAX_BYTES else "" for token in fields.get(_PARAMETER, [])]
