"""The configuration: the `mcpServers` JSON that people already have, and our settings beside it.

Pure: the environment is an argument, and only `file` and `load` look at the disk.
"""

from supervisor.config.entry import OAuthConfig as OAuthConfig
from supervisor.config.entry import ServerConfig as ServerConfig
from supervisor.config.entry import launch_digest as launch_digest
from supervisor.config.load import Configuration as Configuration
from supervisor.config.load import load as load
from supervisor.config.load import parse as parse
from supervisor.config.remarks import placeholders as placeholders
from supervisor.config.settings import Settings as Settings
