"""Who asks: the owner of a request, and of everything that is kept of it. Pure.

Whatever could bring the data of two principals together (a view, a key, a count, a session) takes one; nothing may fall
back to another principal's.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NewType

Principal = NewType("Principal", str)
"""A name that is never shown to other principals."""

ClientKey = tuple[Principal, Hashable]
"""A client of a principal. What comes behind the principal it chose itself: its name, or which of its sessions."""

LOCAL = Principal("local")
"""The one principal there is until identities are configured. The daemon itself asks as this one, too."""
