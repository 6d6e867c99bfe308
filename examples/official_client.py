"""The official Python SDK as the client: the daemon is one MCP server with four tools.

python examples/official_client.py [URL]
"""

from __future__ import annotations

import sys

import trio
from mcp import Client


async def main(url: str) -> None:
    """List the four tools, search with one of them, and read a resource of a server behind them."""
    async with Client(f"{url}/mcp") as client:
        print(f"connected with protocol version {client.protocol_version}")
        for tool in (await client.list_tools()).tools:
            print(f"tool {tool.name}")
        found = await client.call_tool("discover_mcp_tools", {"query": "calculate", "limit": 1})
        assert found.structured_content is not None
        print("best hit:", found.structured_content["tools"][0]["tool_path"])
        for resource in (await client.list_resources()).resources:
            print(f"resource {resource.uri} ({resource.name})")


if __name__ == "__main__":
    trio.run(main, sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:3001")
