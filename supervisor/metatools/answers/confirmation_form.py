"""The form of the question whether a tool may run: its fields, and what an answer says. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from actors.protocol.wire import json

RUN: Final = "run"
REMEMBER: Final = "remember"
LASTING: Final = {"session": "for this client today", "always": "for good"}
"""For how long a yes may hold beyond one call, in words."""
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        RUN: {"type": "boolean", "title": "Run it", "default": False},
        REMEMBER: {
            "type": "string",
            "title": "The next time",
            "enum": ["once", *LASTING],
            "enumNames": ["Ask again", "Do not ask again for this client today", "Never ask for this tool again"],
            "default": "once",
        },
    },
    "required": [RUN],
}


def is_yes(answer: msgspec.Raw) -> bool:
    """Say whether a user has said yes; `answer` is JSON text, whatever a client sent."""
    return json.text_at(answer, "action") == "accept" and bytes(json.at(answer, "content", RUN)) == b"true"


def lasts(answer: msgspec.Raw) -> str:
    """Return for how long a yes was given, one of `LASTING`; empty for one call."""
    how = json.text_at(answer, "content", REMEMBER)
    return how if how in LASTING else ""
