"""The official Python SDK as the client: the daemon is one MCP server with four tools.

python -m pip install 'mcp>=2.3,<3'
python examples/official_client.py [URL [QUERY]]
"""

from __future__ import annotations

import sys

import anyio
import httpx2
from mcp import Client


async def main(url: str, query: str) -> None:
    """List the four tools, search with one of them, and list the resources of the servers behind them."""
    async with Client(f"{url}/mcp") as client:
        print(f"connected with protocol version {client.protocol_version}")
        for tool in (await client.list_tools()).tools:
            print(f"tool {tool.name}")
        answer = await client.call_tool("discover_mcp_tools", {"query": query, "limit": 3})
        assert answer.structured_content is not None
        for hit in answer.structured_content["tools"]:
            print(f'"{query}" finds {hit["tool_path"]}, {hit["relevance_score"]:.3f} (0 is best)')
        for resource in (await client.list_resources()).resources:
            print(f"resource {resource.uri} ({resource.name})")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    url, said = given.get(1, "http://127.0.0.1:3001"), ""
    try:
        anyio.run(main, url, given.get(2, "what time is it in Tokyo"))
    except* httpx2.TransportError:
        said = f"nothing answers at {url}: is the daemon there? Start it with `mcpvisor run`; it says its URL."
    if said:
        sys.exit(said)
