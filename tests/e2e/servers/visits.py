"""A server of the Python SDK 1.x that asks to open addresses, and tells when that is done: `visits.py stdio|http`."""

from __future__ import annotations

import importlib
from typing import Any

ADDRESS = "https://example.com/login"


def made() -> Any:
    """Return the server. `ask` asks for a visit of this id, `refuse` by an error; `done` tells that it is over."""
    fastmcp: Any = importlib.import_module("mcp.server.fastmcp")
    exceptions: Any = importlib.import_module("mcp.shared.exceptions")
    types: Any = importlib.import_module("mcp.types")
    server = fastmcp.FastMCP("visits")

    async def ask(visit: Any, ctx: Any) -> Any:
        return (await ctx.elicit_url(message="Log in", url=ADDRESS, elicitation_id=visit)).action

    async def refuse(visit: Any, ctx: Any) -> Any:
        del ctx
        asked = types.ElicitRequestURLParams(mode="url", message="Log in", url=ADDRESS, elicitationId=visit)
        raise exceptions.UrlElicitationRequiredError([asked])

    async def done(visit: Any, ctx: Any) -> Any:
        await ctx.session.send_elicit_complete(visit)
        return "told"

    for tool in (ask, refuse, done):  # for the SDK this is said again
        tool.__annotations__ = {"visit": str, "ctx": fastmcp.Context, "return": str}
        server.tool()(tool)
    return server


if __name__ == "__main__":
    importlib.import_module("listening").run(made())
