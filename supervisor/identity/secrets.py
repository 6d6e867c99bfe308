"""The text of a token of ours: `mcpv_`, 256 random bits, a checksum. Pure, but for chance.

- The prefix and the checksum let scanners of repositories find a token that leaked, without asking anybody, and tell a
  typing error from a token that was revoked.
- Only the SHA-256 digest of a token is ever kept: nobody can guess 256 random bits, so no slow hash is needed (NIST SP
  800-63B 5.1.2.2, "look-up secrets").
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
import zlib
from typing import Any, Final

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


OPERATOR_PREFIX: Final = "mcpvop_"
PASS_S: Final = 60.0
"""For so long, before and after its moment, a pass is good."""
_PASS: Final = re.compile(rf"{OPERATOR_PREFIX}([0-9]{{1,12}})_([0-9a-f]{{64}})")


def endpoint(address: tuple[Any, ...]) -> str:
    """Return the daemon's end of a connection, by the address that a socket on either side says: address and port."""
    return f"{str(address[0]).removeprefix('::ffff:')} {address[1]}"


def sign_pass(key: bytes, end: str, now: float) -> str:
    """Return a pass for whoever has a key of the daemon's own files: good for a minute, at one `endpoint`.

    The key itself is never sent, as another program may listen where a daemon was. What that is told is of no use to it
    at the daemon, whatever it writes into `Host`: a connection to the daemon has another end.
    """
    return f"{OPERATOR_PREFIX}{int(now)}_{_mac(key, end, int(now))}"


def is_pass(text: str, key: bytes, end: str, now: float) -> bool:
    """Say whether a text is a pass of that key, for that end and about that moment, in unix seconds."""
    match = _PASS.fullmatch(text)
    if match is None or abs(now - int(match[1])) > PASS_S:
        return False
    return hmac.compare_digest(match[2], _mac(key, end, int(match[1])))


def is_key(text: str, key: bytes, end: str, now: float) -> bool:
    """Say whether a text is a pass of that key, or the key itself in hexadecimal digits; see `is_pass`."""
    return is_pass(text, key, end, now) or (bool(key) and hmac.compare_digest(text.encode(), key.hex().encode()))


def _mac(key: bytes, end: str, moment: int) -> str:
    return hmac.new(key, f"{end}\n{moment}".encode(), "sha256").hexdigest()
