"""The actor of one MCP server."""

from actors.server.actor import ServerActor as ServerActor
from actors.server.process.inbox import ServerMessage as ServerMessage
from actors.server.profile import Profile as Profile
from actors.server.profile import Shared as Shared
from actors.server.settings import ServerSettings as ServerSettings
