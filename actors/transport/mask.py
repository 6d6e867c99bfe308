"""Hides configured secrets in text of a server: what it was given may come back in what it says of itself. Pure.

Hidden are the values of its environment and headers, and the forms in which programs tend to print them: each line of
several, escaped for JSON or a URL, as base64, the token behind `Bearer`, the password inside a URL. Values of fewer
than 4 characters are no secrets; neither is PATH, which operators need to see. (Threat catalogue I15.)
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus, urlsplit

MIN_CHARACTERS = 4
HIDDEN = "***"
_SHOWN_NAMES = frozenset({"PATH"})


class Mask:
    """Replaces secrets by `***`. `values` are configured values by name."""

    def __init__(self, values: Mapping[str, str]) -> None:
        secrets = {form for name, value in values.items() if name not in _SHOWN_NAMES for form in _forms(value)}
        known = sorted((form for form in secrets if len(form) >= MIN_CHARACTERS), key=lambda form: (-len(form), form))
        self.longest = len(known[0].encode(errors="surrogateescape")) if known else 0
        self._pattern = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        return self._pattern.sub(HIDDEN, text) if self._pattern is not None else text


def _forms(value: str) -> Iterator[str]:
    for plain in (value, value.strip(), *value.splitlines(), _token(value), _password(value)):
        if len(plain.strip()) < MIN_CHARACTERS:
            continue
        data = plain.encode(errors="surrogateescape")
        yield plain
        yield quote(data, safe="")
        yield quote_plus(data)
        yield base64.b64encode(data).decode().rstrip("=")
        yield base64.urlsafe_b64encode(data).decode().rstrip("=")
        yield repr(plain)[1:-1]
        yield json.dumps(plain)[1:-1]
        yield json.dumps(plain, ensure_ascii=False)[1:-1]


def _token(value: str) -> str:
    """Return what follows an authentication scheme (RFC 9110 section 11.4), as in `Bearer abcd`."""
    words = value.split()
    return words[1] if len(words) == 2 else ""


def _password(value: str) -> str:
    try:
        return urlsplit(value).password or ""
    except ValueError:
        return ""
