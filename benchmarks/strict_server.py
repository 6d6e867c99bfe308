"""An MCP server that publishes given tools and holds each call against the tool's own schema. For `benchmarks.needs`.

`python strict_server.py NAME TOOLS.json [ANSWERS.json]`: a JSON array of tool definitions, and an object with the text
that each tool answers. A call with valid arguments is answered with that text, or "ran NAME:tool" where there is none;
any other is a result with `isError` that says what is wrong, as servers do that check for themselves, and shows no
schema. A schema that is not valid holds nothing against a call. Speaks the legacy era
(2025-11-25).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

RAN = "ran "
REFUSED = "Invalid arguments: "
MAX_PROBLEMS = 5
MAX_PROBLEM_CHARS = 200
NO_ANSWERS: Mapping[str, str] = MappingProxyType({})


def main() -> None:
    """Answer requests until the input ends."""
    name, *files = sys.argv[1:]
    tools, answers = [*(json.loads(Path(file).read_text(encoding="utf-8")) for file in files), {}][:2]
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            say({"id": message["id"], **answer(name, tools, message["method"], message.get("params", {}), answers)})


def answer(
    name: str, tools: list[dict[str, Any]], method: str, params: dict[str, Any], answers: Mapping[str, str] = NO_ANSWERS
) -> dict[str, Any]:
    """Return result or error for a request."""
    match method:
        case "initialize":
            info = {"name": name, "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            return {"result": result}
        case "tools/list":
            return {"result": {"tools": tools}}
        case "tools/call":
            return _called(name, tools, params, answers)
        case "ping":
            return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def _called(
    name: str, tools: list[dict[str, Any]], params: dict[str, Any], answers: Mapping[str, str]
) -> dict[str, Any]:
    tool = next((tool for tool in tools if tool["name"] == params["name"]), None)
    if tool is None:
        return {"error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}}
    wrong = problems(tool["inputSchema"], params.get("arguments", {}))
    text = f"{REFUSED}{'; '.join(wrong)}" if wrong else answers.get(tool["name"], f"{RAN}{name}:{tool['name']}")
    return {"result": {"content": [{"type": "text", "text": text}], "isError": bool(wrong)}}


def problems(schema: Any, arguments: Any) -> list[str]:
    """Return what is wrong with arguments by a schema, formats included. It is of the draft it names, or 2020-12."""
    # It takes longer to import than all the rest of a start, and a server is started to be listed, too.
    import jsonschema
    import referencing
    from jsonschema.validators import validator_for

    kind = validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
        checker = kind(schema, registry=referencing.Registry(), format_checker=kind.FORMAT_CHECKER)
        texts = [f"{error.json_path}: {error.message}" for error in checker.iter_errors(arguments)]
    except (jsonschema.SchemaError, referencing.exceptions.Unresolvable):
        return []
    return [text[:MAX_PROBLEM_CHARS] for text in texts[:MAX_PROBLEMS]]


def say(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
