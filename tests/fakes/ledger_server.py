"""A server that says as whom it was started: `python -m tests.fakes.ledger_server` over stdio, `Ledger` for fakes.

`tell` answers with the secret it was given, what it was called with, and its process. `ask` asks the user first, with
the same, and answers with what it was told. Standard library only.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
TOOLS = [{"name": name, "inputSchema": SCHEMA} for name in ("tell", "ask")]
FORM = {"type": "object", "properties": {"who": {"type": "string"}}}


def result_of(secret: str, process: str, note: str, said: Any = None) -> dict[str, Any]:
    entry = {"secret": secret, "process": process, "note": note, "said": said}
    return {"content": [{"type": "text", "text": json.dumps(entry)}], "structuredContent": entry}


class Ledger:
    """One process or session."""

    def __init__(self, secret: str, process: str) -> None:
        self._secret = secret
        self._process = process
        self._open: dict[str, tuple[Any, str]] = {}

    def take(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Return what is said to a message, if anything."""
        match message.get("method"):
            case None:
                id_, note = self._open.pop(str(message["id"]))
                return self._answer(id_, note, message.get("result", message.get("error")))
            case "initialize":
                said = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
                return self._result(message["id"], {**said, "serverInfo": {"name": "ledger", "version": "1"}})
            case "tools/list":
                return self._result(message["id"], {"tools": TOOLS})
            case "tools/call":
                return self._called(message["id"], message["params"])
        if "id" in message:
            error = {"code": -32601, "message": "there is no such method"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return None

    def _called(self, id_: Any, params: dict[str, Any]) -> dict[str, Any]:
        note = params["arguments"]["note"]
        if params["name"] == "tell":
            return self._answer(id_, note)
        number = f"q{len(self._open)}-{note}"
        self._open[number] = id_, note
        question = {"mode": "form", "message": f"{self._secret} {note}", "requestedSchema": FORM}
        return {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": question}

    def _answer(self, id_: Any, note: str, said: Any = None) -> dict[str, Any]:
        return self._result(id_, result_of(self._secret, self._process, note, said))

    def _result(self, id_: Any, result: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": id_, "result": result}


def main() -> None:
    ledger = Ledger(os.environ.get("SECRET", ""), str(os.getpid()))
    for line in sys.stdin:
        said = ledger.take(json.loads(line))
        if said is not None:
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
