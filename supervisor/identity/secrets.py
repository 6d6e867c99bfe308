"""The text of a token of ours: `mcpv_`, 256 random bits, a checksum. Pure, but for chance.

- The prefix and the checksum let scanners of repositories find a token that leaked, without asking anybody, and tell a
  typing error from a token that was revoked.
- Only the SHA-256 digest of a token is ever kept: nobody can guess 256 random bits, so no slow hash is needed (NIST SP
  800-63B 5.1.2.2, "look-up secrets").
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from typing import Final

PREFIX: Final = "mcpv_"
ID_CHARS: Final = 12
_ALPHABET: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_SECRET_CHARS: Final = 43
"""62 ** 43 is above 2 ** 256."""
_CHECK_CHARS: Final = 6
"""62 ** 6 is above 2 ** 32."""
_FORM: Final = re.compile(rf"{PREFIX}([0-9A-Za-z]{{{_SECRET_CHARS}}})_([0-9A-Za-z]{{{_CHECK_CHARS}}})")


def new_token() -> str:
    """Return a token that nobody has seen."""
    return token_of(secrets.randbits(256))


def token_of(secret: int) -> str:
    """Return the token of a secret, a number below 2 ** 256."""
    text = _base62(secret, _SECRET_CHARS)
    return f"{PREFIX}{text}_{_checksum(text)}"


def digest_of(token: str) -> bytes | None:
    """Return what a token is kept and found by; None for a text that is no token of ours, or mistyped."""
    match = _FORM.fullmatch(token)
    if match is None or _checksum(match[1]) != match[2]:
        return None
    return hashlib.sha256(token.encode()).digest()


def id_of(digest: bytes) -> str:
    """Return what a token is called where people look; it says nothing of the token."""
    return digest.hex()[:ID_CHARS]


def id_of_text(token: str) -> str:
    """Return what a token of somebody else is called where people look."""
    return id_of(hashlib.sha256(token.encode()).digest())


def _checksum(text: str) -> str:
    return _base62(zlib.crc32(text.encode()), _CHECK_CHARS)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, rest = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[rest])
    return "".join(reversed(digits))
