"""The actor of one MCP server."""

from actors.server.actor import ServerActor as ServerActor
from actors.server.inbox import ServerMessage as ServerMessage
from actors.server.parts.context import Profile as Profile
from actors.server.parts.context import Shared as Shared
from actors.server.settings import ServerSettings as ServerSettings
