"""What a request shows of who sends it: the header `Authorization` (RFC 6750 2.1). Pure.

Whoever shows two credentials, or one in another form, has shown a wrong one: nobody guesses which was meant.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from supervisor.front.edge.fields import Fields

MAX_BYTES: Final = 16 * 1024
"""A longer one is refused before anything is made of it."""
_NAME: Final = b"authorization"
_SCHEME: Final = b"bearer"


class Credential(Struct, frozen=True):
    """`token` is empty where a credential was shown that is none; `missing`: none was shown at all."""

    token: str = ""
    missing: bool = False


def read_credential(fields: Fields) -> Credential:
    """Return what the header fields of a request show."""
    line = fields.lines.get(_NAME)
    if line is None:
        return Credential(missing=True)
    scheme, _, token = line.partition(b" ")
    if _NAME in fields.doubled or scheme.lower() != _SCHEME or len(token) > MAX_BYTES or not token.isascii():
        return Credential()
    return Credential(token=token.strip().decode("ascii"))
