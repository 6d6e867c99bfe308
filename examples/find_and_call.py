"""Find a tool by what it should do, and run it, with nothing but HTTP and JSON.

python examples/find_and_call.py "calculate an expression" '{"expression": "6 * 7"}' [URL]
"""

from __future__ import annotations

import json
import sys
from typing import Any

import httpx2


def call(url: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call one tool and return its result. Raises RuntimeError with what is said of a call that failed."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    answer = httpx2.post(f"{url}/mcp", json=request, timeout=60, trust_env=False).json()
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    result: dict[str, Any] = answer["result"]
    if result.get("isError"):
        raise RuntimeError(result["content"][0]["text"])
    return result


def main(purpose: str, arguments: str, url: str = "http://127.0.0.1:3001") -> None:
    """Search, then execute the best hit."""
    answer = call(url, "discover_mcp_tools", {"query": purpose, "limit": 3})["structuredContent"]
    for hit in answer["tools"]:
        print(f"{hit['relevance_score']:.3f} {hit['tool_path']}: {hit['description']}")
    best = answer["tools"][0]["tool_path"]
    result = call(url, "execute_mcp_tool", {"tool_path": best, "arguments": json.loads(arguments)})
    print(f"{best} answers:", *(block.get("text", block["type"]) for block in result["content"]))


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (RuntimeError, httpx2.HTTPError) as error:
        sys.exit(f"{error}")
