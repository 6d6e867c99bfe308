"""How an answer of the daemon says that its configuration is refused: by a header with the first fault. Pure."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

HEADER: Final = "Mcpvisor-Configuration-Refused"
MAX_CHARS: Final = 300
"""Of the fault; all of it, and the others, are on the page of the configuration."""
_MAX_ENCODED: Final = 12 * MAX_CHARS
_PLAIN: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def value_of(fault: str) -> str:
    """Return a fault as the value of the header: visible ASCII, the rest of it percent-encoded (RFC 3986, 2.1)."""
    return quote(fault.strip()[:MAX_CHARS], safe=_PLAIN, errors="replace")


def fault_of(value: str) -> str:
    """Return the fault that the value of the header has; empty for none."""
    return unquote(value[:_MAX_ENCODED])
