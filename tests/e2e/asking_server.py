"""A server of the official Python SDK, 1.x or 2.x, that asks two questions during each call.

`asking_server.py stdio`, or `asking_server.py http`, which listens on a free port and writes which as its first line.
"""

import importlib.util
import json
import socket
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def with_requests() -> Any:
    """The SDK 1.x: it asks by requests, one after the other."""
    fastmcp = importlib.import_module("mcp.server.fastmcp")
    form = importlib.import_module("pydantic").create_model("Form", text=(str, ...))
    server = fastmcp.FastMCP("asking")

    async def ask_twice(label: Any, ctx: Any) -> Any:  # for the SDK this is said again below
        answers = [await ctx.elicit(message=f"{label}/{number}", schema=form) for number in (1, 2)]
        return json.dumps([answer.data.text for answer in answers])

    ask_twice.__annotations__ = {"label": str, "ctx": fastmcp.Context, "return": str}
    server.tool()(ask_twice)
    return server


def with_results() -> Any:
    """The SDK 2.x: it asks by an incomplete result."""
    server_module = importlib.import_module("mcp.server.mcpserver")
    types = importlib.import_module("mcp.types")
    server = server_module.MCPServer("asking")

    async def ask_twice(label: Any, ctx: Any) -> Any:  # for the SDK this is said again below
        answers = ctx.input_responses or {}
        if len(answers) < 2:
            params = [
                types.ElicitRequestFormParams(message=f"{label}/{number}", requested_schema=SCHEMA) for number in (1, 2)
            ]
            return types.InputRequiredResult(
                input_requests={str(number): types.ElicitRequest(params=each) for number, each in enumerate(params, 1)}
            )
        return json.dumps([answers[key].content["text"] for key in ("1", "2")])

    annotations = {"label": str, "ctx": server_module.Context, "return": str | types.InputRequiredResult}
    ask_twice.__annotations__ = annotations
    server.tool()(ask_twice)
    return server


def main() -> None:
    newer = importlib.util.find_spec("mcp.server.mcpserver") is not None
    server = with_results() if newer else with_requests()
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(100)
    print(listener.getsockname()[1], flush=True)
    uvicorn = importlib.import_module("uvicorn")
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
