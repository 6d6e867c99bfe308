"""How servers write their messages: one function for each way."""

from __future__ import annotations

import json
from typing import Any


def compact(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def crlf(message: dict[str, Any]) -> bytes:
    return compact(message)[:-1] + b"\r\n"


def marked(message: dict[str, Any]) -> bytes:
    """With a byte order mark, between blank lines."""
    return b"\n \n\xef\xbb\xbf" + compact(message) + b"\n"


def id_last(message: dict[str, Any]) -> bytes:
    """In the order of the alphabet, backwards; with white space."""
    whole = {"jsonrpc": "2.0", **message}
    return (
        json.dumps({key: whole[key] for key in sorted(whole, reverse=True)}, separators=(" , ", " : ")).encode() + b"\n"
    )


def both(message: dict[str, Any]) -> bytes:
    """With every member that an answer can have, `null` where it is none."""
    answers = {"result": None, "error": None} if "method" not in message else {}
    return compact({**answers, **message})


def batched(message: dict[str, Any]) -> bytes:
    """As an array, as 2025-03-26 allows it; what answers the handshake is none."""
    text = compact(message)
    return text if "protocolVersion" in message.get("result", {}) or "error" in message else b"[" + text[:-1] + b"]\n"


def with_texts(message: dict[str, Any]) -> bytes:
    """With a text for the id of an answer, whatever it was read as."""
    return compact({**message, "id": str(message["id"])} if "id" in message and "method" not in message else message)


def numbered(message: dict[str, Any]) -> bytes:
    """With a number for every id, as it was read; a text that is none is NaN, which is written as `null`."""
    return compact({**message, "id": None} if isinstance(message.get("id"), str) else message)
