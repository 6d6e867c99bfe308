"""The key by which its operator is known to a daemon: its file, and how either shows to have it without showing it.

    command                                     the process that lives
    ───────                                     ──────────────────────
    a request                              ->
                                           <-   401: challenge, proof = MAC(key, challenge, end)
    the proof is right: so the key is there,
    at the very end that was connected to
    the request, pass = MAC(key, challenge,
      end, method, path)                   ->
                                                its own challenge, of this moment, for the first time

- What another program is told at that address while the daemon is not there, it can use nowhere: the daemon that comes
  back has given no such challenge. Without the key it is told nothing at all, as it has no proof.
- One that passes on the challenge of a daemon that lives stands at another end of a connection, which is in both.
- Nothing is remembered of whoever asks for a challenge: it has its moment, and the process's own seal.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from actors.errors import ConfigError

PREFIX: Final = "mcpvop_"
CHALLENGE: Final = "challenge"
PROOF: Final = "proof"
"""What the data of a 401 has, by these names."""
GOOD_FOR_S: Final = 30.0
MAX_USED: Final = 16_384
"""Challenges that were answered are remembered while they would be good. Only those who have the key add to them."""
_CHALLENGE: Final = r"([0-9a-f]{12})([0-9a-f]{32})([0-9a-f]{32})"
"""A moment in milliseconds, chance, a seal."""
_PASS: Final = re.compile(rf"{PREFIX}({_CHALLENGE})_([0-9a-f]{{64}})")
_WHOLE_CHALLENGE: Final = re.compile(_CHALLENGE)


def endpoint(address: tuple[Any, ...]) -> str:
    """Return the daemon's end of a connection, by the address that a socket on either side says: address and port."""
    return f"{str(address[0]).removeprefix('::ffff:')} {address[1]}"


def prove(key: bytes, challenge: str, end: str) -> str:
    """Return what shows that whoever gave a challenge at that end has the key."""
    return _mac(key, "daemon", challenge, end)


def is_proof(key: bytes, challenge: str, proof: str, end: str) -> bool:
    """Say whether a challenge comes from somebody with the key, at that end."""
    right = prove(key, challenge, end)
    return bool(_WHOLE_CHALLENGE.fullmatch(challenge)) and hmac.compare_digest(proof.encode(), right.encode())


def sign_pass(key: bytes, challenge: str, end: str, method: str, path: str) -> str:
    """Return the answer to a challenge: good once at each process, for a request of this method and path, as it is
    sent.
    """
    return f"{PREFIX}{challenge}_{_mac(key, 'operator', challenge, end, method, path)}"


class OperatorKey:
    """The key of one daemon, in the process that lives; without a `key` nobody is its operator.

    `boot` is known to this process alone, or to those that serve one address together: the next connection may lead to
    any of them. What was answered each remembers for itself. `now` is a clock in seconds that
    all of them have in common, and that does not go back.
    """

    def __init__(self, key: bytes, boot: bytes, now: Callable[[], float]) -> None:
        self._key = key
        self._boot = boot
        self._now = now
        self._used: OrderedDict[str, float] = OrderedDict()

    def challenge(self, end: str) -> Mapping[str, str]:
        """Return a challenge for whoever is at the other side of a connection that ends here, with its proof."""
        if not self._key or not end:
            return {}
        body = f"{int(self._now() * 1000) & 0xFFFFFFFFFFFF:012x}{secrets.token_hex(16)}"
        made = body + self._seal(body)
        return {CHALLENGE: made, PROOF: prove(self._key, made, end)}

    def admits(self, text: str, end: str, method: str, path: str) -> bool:
        """Say whether a text is a pass for this request, which nobody has shown before; or the key itself, in
        hexadecimal digits, which is a secret like any token.
        """
        if not self._key:
            return False
        match = _PASS.fullmatch(text)
        if match is None:
            return hmac.compare_digest(text.encode(errors="replace"), self._key.hex().encode())
        challenge, moment, chance, seal, _ = match.groups()
        right = sign_pass(self._key, challenge, end, method, path)
        ours = hmac.compare_digest(seal, self._seal(moment + chance)) and hmac.compare_digest(text, right)
        return ours and self._take(challenge, int(moment, 16) / 1000)

    def _take(self, challenge: str, made_at: float) -> bool:
        now = self._now()
        while self._used and next(iter(self._used.values())) <= now:
            self._used.popitem(last=False)
        if challenge in self._used or not made_at <= now < made_at + GOOD_FOR_S or len(self._used) >= MAX_USED:
            return False
        self._used[challenge] = now + GOOD_FOR_S  # not its own end: so they are in the order in which they end
        return True

    def _seal(self, body: str) -> str:
        return hmac.digest(self._boot, body.encode(), hashlib.sha256).hex()[:32]


def _mac(key: bytes, *parts: str) -> str:
    return hmac.digest(key, "\n".join(("mcpvisor", *parts)).encode(errors="surrogateescape"), hashlib.sha256).hex()


KEY_BYTES: Final = 32
KEY_FILE: Final = "page.key"
"""Whoever can read this one in a data directory is the operator of the daemon there."""


def read_key(path: Path) -> bytes:
    """Return the key in a file. Raises `OSError`, and `ConfigError` for what is no key of this user alone. Blocks.

    What it says is trusted, so nobody else may be able to write or read it.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        about = os.fstat(fd)
        private = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077
        content = os.read(fd, KEY_BYTES + 1) if private else b""
    finally:
        os.close(fd)
    if private and len(content) == KEY_BYTES:
        return content
    fault = f"the key does not have {KEY_BYTES} bytes"
    if not private:
        fault = "the key may be known to others: the file must belong to this user, with mode 0600"
    raise ConfigError(
        fault, path=str(path), hint="delete it and a new one is made; what the old one sealed is then void"
    )
