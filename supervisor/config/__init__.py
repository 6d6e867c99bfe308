"""The configuration: the `mcpServers` JSON that people already have, and our settings beside it.

Pure: the environment is an argument, and only `file` and `presence` look at the disk.
"""

from supervisor.config.entries.digest import launch_digest as launch_digest
from supervisor.config.entries.entry import ServerConfig as ServerConfig
from supervisor.config.entries.oauth import OAuthConfig as OAuthConfig
from supervisor.config.entries.remarks import placeholders as placeholders
from supervisor.config.load import Configuration as Configuration
from supervisor.config.load import load as load
from supervisor.config.load import parse as parse
from supervisor.config.structs import Settings as Settings
