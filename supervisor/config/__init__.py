"""The configuration: the `mcpServers` JSON that people already have, and our settings beside it."""

from supervisor.config.digest import launch_digest
from supervisor.config.entry import ServerConfig
from supervisor.config.load import Configuration, load, parse
from supervisor.config.oauth import OAuthConfig
from supervisor.config.remarks import placeholders
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
