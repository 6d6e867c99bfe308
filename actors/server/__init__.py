"""The actor of one MCP server."""

from actors.server.actor import ServerActor as ServerActor
from actors.server.inbox import Message as Message
from actors.server.settings import ServerSettings as ServerSettings
