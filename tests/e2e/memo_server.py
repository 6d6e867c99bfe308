"""A server of the modern era, made with the official Python SDK 2.x, over stdio: a memo that is read and written."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer

MEMO = "memo://one"

server = MCPServer("memo")
memos = ["nothing"]


@server.resource(MEMO)
def memo() -> str:
    """Return what was written last."""
    return memos[-1]


@server.tool()
async def write(text: str, ctx: Context) -> str:
    """Write the memo, and tell who is subscribed to it."""
    memos.append(text)
    await ctx.notify_resource_updated(MEMO)
    return text


if __name__ == "__main__":
    server.run()
