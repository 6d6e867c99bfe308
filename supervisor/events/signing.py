"""Signatures of what is sent to a receiver, as of Standard Webhooks (standardwebhooks.com, version 1.0). Pure.

The receiver makes the same HMAC-SHA-256 over `ID.TIMESTAMP.BODY`, and refuses what is signed otherwise or too old.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

PREFIX: Final = "whsec_"
MIN_SECRET_BYTES: Final = 24
"""The least that Standard Webhooks wants."""


def key_of(secret: str) -> bytes:
    """Return the key of a secret: what is behind `whsec_` is base64, any other text is itself.

    Raises `ValueError` for what is no base64 there, and for a key that is too short.
    """
    try:
        key = base64.b64decode(secret[len(PREFIX) :], validate=True) if secret.startswith(PREFIX) else secret.encode()
    except binascii.Error:
        raise ValueError(f"is no base64 behind {PREFIX}") from None
    if len(key) < MIN_SECRET_BYTES:
        raise ValueError(f"is shorter than {MIN_SECRET_BYTES} bytes")
    return key


def sign(key: bytes, id_: str, moment: int, body: bytes) -> dict[str, str]:
    """Return the headers that sign a body sent at a moment (unix s)."""
    digest = hmac.new(key, b"%s.%d." % (id_.encode(), moment) + body, hashlib.sha256).digest()
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": id_, "webhook-timestamp": str(moment), "webhook-signature": signature}
