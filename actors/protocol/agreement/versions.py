"""The protocol revisions we speak and the two eras they fall into.

*legacy*: the `initialize` handshake, 2024-11-05 to 2025-11-25. *modern*: stateless requests with `_meta`, since
2026-07-28 (MCP 2026-07-28, basic/versioning).
"""

from __future__ import annotations

from typing import Literal

Era = Literal["legacy", "modern"]

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
LATEST_LEGACY = LEGACY_VERSIONS[-1]
LATEST_MODERN = MODERN_VERSIONS[-1]
BATCH_VERSION = "2025-03-26"
"""The only revision with JSON-RPC batches."""

META_PREFIX = "io.modelcontextprotocol/"
META_VERSION = META_PREFIX + "protocolVersion"
META_CAPABILITIES = META_PREFIX + "clientCapabilities"
META_CLIENT_INFO = META_PREFIX + "clientInfo"
META_SERVER_INFO = META_PREFIX + "serverInfo"
META_LOG_LEVEL = META_PREFIX + "logLevel"
META_SUBSCRIPTION = META_PREFIX + "subscriptionId"
