"""The configuration: the `mcpServers` JSON that people already have, and our settings beside it."""

from supervisor.config.entries.digest import launch_digest
from supervisor.config.entries.entry import ServerConfig
from supervisor.config.entries.oauth import OAuthConfig
from supervisor.config.entries.remarks import placeholders
from supervisor.config.load import Configuration, load, parse
from supervisor.config.structs import Settings

__all__ = [
    "Configuration",
    "OAuthConfig",
    "ServerConfig",
    "Settings",
    "launch_digest",
    "load",
    "parse",
    "placeholders",
]
