"""What a server wants that refuses a request: the `Bearer` challenge of `WWW-Authenticate` (RFC 6750 3, RFC 9728 5.1).

Pure. Whatever is malformed is as if it were not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

MAX_HEADER_CHARS: Final = 8192
MAX_SCOPES: Final = 64
_BEARER: Final = re.compile(r"(?:^|,)\s*bearer(?=[\s,]|$)", re.IGNORECASE)
_PARAMETER: Final = re.compile(
    r"""\s*,?\s*(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]+))"""
)
_ESCAPED: Final = re.compile(r"\\(.)")
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,256}")
"""One word of a scope (RFC 6749 3.3)."""


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """One challenge. `scope` is empty where it names none."""

    resource_metadata: str = ""
    scope: tuple[str, ...] = ()
    error: str = ""

    @property
    def insufficient(self) -> bool:
        """Whether the token is good, but does not allow enough (RFC 6750 3.1)."""
        return self.error == "insufficient_scope"


def challenge_of(headers: Iterable[str]) -> Challenge:
    """Return the first `Bearer` challenge of some `WWW-Authenticate` headers; an empty one if there is none."""
    for header in headers:
        text = header[:MAX_HEADER_CHARS]
        if begin := _BEARER.search(text):
            return _challenge(text, begin.end())
    return Challenge()


def _challenge(text: str, at: int) -> Challenge:
    parameters: dict[str, str] = {}
    while part := _PARAMETER.match(text, at):
        quoted = part["quoted"]
        value = part["plain"] if quoted is None else _ESCAPED.sub(r"\1", quoted)
        parameters.setdefault(part["name"].lower(), value)
        at = part.end()
    return Challenge(
        resource_metadata=parameters.get("resource_metadata", ""),
        scope=words_of(parameters.get("scope", "")),
        error=parameters.get("error", ""),
    )


def words_of(scope: str) -> tuple[str, ...]:
    """Return the words of a scope, each once, in their order; what is no word of one is dropped."""
    words = dict.fromkeys(word for word in scope.split() if _SCOPE.fullmatch(word))
    return tuple(words)[:MAX_SCOPES]
