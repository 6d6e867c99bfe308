"""What the model of a client is asked, and what it said. Pure. (MCP 2025-11-25, client/sampling.)"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

MAX_TOKENS: Final = 4096
"""So much it may say, and think aloud before."""


def sample_params(system: str, user: str) -> msgspec.Raw:
    """Return the params of `sampling/createMessage` for one answer to one text, without any context of the client's."""
    message = {"role": "user", "content": {"type": "text", "text": user}}
    return msgspec.Raw(encode({"messages": [message], "systemPrompt": system, "maxTokens": MAX_TOKENS}))


def sampled_text(result: msgspec.Raw) -> str:
    """Return the text that a model said, of all its blocks of text; empty for what has none, or cannot be read."""
    content = json.at(result, "content")
    blocks = json.read_or(json.OBJECTS, content, None) or [json.members(content)]
    return "".join(json.text_at(block.get("text")) for block in blocks if json.text_at(block.get("type")) == "text")
