"""Whose question it is, where a client could not know: at doors with many servers behind them. Pure.

A person should see who asks before typing anything (MCP 2025-11-25, client/elicitation "Security Considerations"). The
name is that of the configuration; what a server calls itself proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from actors.protocol.agreement.capabilities import ELICIT
from actors.protocol.asking.input_required import InputRequest
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode
from supervisor.metatools.texts import clean


def label(server: str, method: str, params: msgspec.Raw) -> msgspec.Raw:
    """Return the params of a question with the server's name before its message; others as they are."""
    if method != ELICIT or not server:
        return params
    try:
        members = json.read(json.MEMBERS, params)
        message = json.read(json.STRING, members["message"])
    except (json.UnreadableJson, KeyError):
        return params
    return msgspec.Raw(encode({**members, "message": f"[{clean(server)}] {message}"}))


def label_result(server: str, body: bytes, requests: Mapping[str, InputRequest]) -> bytes:
    shown = {key: InputRequest(each.method, label(server, each.method, each.params)) for key, each in requests.items()}
    return encode({**json.MEMBERS.decode(body), "inputRequests": shown})
