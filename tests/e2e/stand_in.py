"""A small MCP server over stdio with one role: `stand_in.py ROLE [ARGUMENT]`. Standard library only, one thread.

It speaks the handshake of 2025-06-18 and answers `-32601` to everything else, as older servers do. It can grow a tool
and say so, leave a call unanswered, survive the end of its input and SIGTERM, and leave a daemonised grandchild; a
process that is to be missed connects to the Unix socket that ARGUMENT names.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

Arguments = dict[str, Any]
Handler = Callable[[Arguments], str | None]

ROLE = sys.argv[1]
ARGUMENT = sys.argv[2] if len(sys.argv) > 2 else ""
held: list[socket.socket] = []
request: dict[str, Any] = {}
"""The one that is being answered."""
MEMO = "memo://one"
memo = {"text": "nothing"}
watched: set[str] = set()
leaked: list[bytes] = []


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def alive(name: str) -> None:
    """Tell the test that this process lives; it sees the end of the connection when the process is dead."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(ARGUMENT)
    connection.sendall(f"{name} {os.getpid()}\n".encode())
    held.append(connection)


# Tools: text is the answer, None means that there will be none -------------------------------------------------------


def echo(arguments: Arguments) -> str:
    return str(arguments.get("text", ""))


def grow(arguments: Arguments) -> str:
    name = f"sprout_{len(TOOLS)}"
    TOOLS[name] = echo
    send({"method": "notifications/tools/list_changed"})
    return name


def hang(arguments: Arguments) -> None:
    if ARGUMENT:
        alive("hanging")


def wait(arguments: Arguments) -> str:
    alive("waiting")
    held[-1].recv(1)
    return "released"


def big(arguments: Arguments) -> str:
    return "x" * int(arguments["size"])


def resolve(arguments: Arguments) -> str:
    return f"/libraries/{arguments['libraryName']}"


def read_file(arguments: Arguments) -> str:
    return f"contents of {arguments['path']}"


def list_allowed_directories(arguments: Arguments) -> str:
    return "Allowed directories:\n/home"


def create_issue(arguments: Arguments) -> str:
    return f"created {arguments['title']!r} in {arguments['repo']}"


def work(arguments: Arguments) -> str:
    """Tell of progress, if that is wanted, and log at three levels."""
    token = request["params"].get("_meta", {}).get("progressToken")
    for done in range(3 if token is not None else 0):
        send({"method": "notifications/progress", "params": {"progressToken": token, "progress": done, "total": 3}})
    for level in ("debug", "info", "error"):
        send({"method": "notifications/message", "params": {"level": level, "data": f"{level} of the work"}})
    return "worked"


def ask(arguments: Arguments) -> str:
    """Ask whoever called for a name, or what else is wanted, and give back the whole answer."""
    properties = arguments.get("properties", {"name": {"type": "string"}})
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    params = {"message": arguments["message"], "requestedSchema": schema}
    send({"id": "question", "method": "elicitation/create", "params": params})
    while (answered := json.loads(sys.stdin.readline())).get("id") != "question":
        pass
    return json.dumps(answered.get("result") or answered["error"])


def write(arguments: Arguments) -> str:
    """Write the memo, and tell who is subscribed to it."""
    memo["text"] = str(arguments["text"])
    if MEMO in watched:
        send({"method": "notifications/resources/updated", "params": {"uri": MEMO}})
    return memo["text"]


def leak(arguments: Arguments) -> str:
    """Take so many MB, and keep them."""
    leaked.append(b"x" * 1_000_000 * arguments["mb"])
    return "taken"


def fork(arguments: Arguments) -> str:
    """Start so many processes that do nothing, and say how many could be."""
    children = 0
    for _ in range(arguments["count"]):
        try:
            if not os.fork():
                while True:
                    signal.pause()
        except OSError:
            break
        children += 1
    return str(children)


ROLES: dict[str, dict[str, Handler]] = {
    "growing": {"grow": grow, "echo": echo, "hang": hang, "wait": wait, "big": big},
    "stubborn": {"echo": echo},
    "context7": {"resolve-library-id": resolve},
    "filesystem": {"read_file": read_file, "list_allowed_directories": list_allowed_directories},
    "github": {"create_issue": create_issue},
    "excalidraw": {"draw": echo},
    "talkative": {"work": work, "ask": ask},
    "memo": {"write": write},
    "greedy": {"leak": leak, "fork": fork, "echo": echo},
    "worded": {"look": echo},
}
NEEDED = {
    "resolve-library-id": ["libraryName"],
    "read_file": ["path"],
    "create_issue": ["repo", "title"],
    "big": ["size"],
    "ask": ["message"],
    "leak": ["mb"],
    "fork": ["count"],
    "write": ["text"],
}
RESOURCE = {"uri": "ui://excalidraw/mcp-app.html", "name": "Excalidraw App", "mimeType": "text/html"}
PAGE = "<!DOCTYPE html><html></html>"


def read_tools() -> dict[str, Handler]:
    """The tools of this start: those of the role, or those that a file names."""
    if ROLE != "listed":
        return dict(ROLES[ROLE])
    with open(ARGUMENT, encoding="utf-8") as file:  # noqa: PTH123 - start-up time
        return dict.fromkeys(file.read().split(), echo)


# The protocol ---------------------------------------------------------------------------------------------------------


def definition(name: str) -> dict[str, Any]:
    """The definition of one tool."""
    needed = NEEDED.get(name, [])
    schema = {"type": "object", "properties": {key: {} for key in needed}, "required": needed}
    description = f"{name} of {ROLE}: search libraries, files, issues"
    if ROLE == "worded":
        with open(ARGUMENT, encoding="utf-8") as file:  # noqa: PTH123 - start-up time
            description = file.read()
    return {"name": name, "description": description, "inputSchema": schema}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for no answer. Raises LookupError for what is not there."""
    if method == "initialize":
        capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
        if ROLE == "excalidraw":
            capabilities["resources"] = {}
        if ROLE == "memo":
            capabilities["resources"] = {"subscribe": True}
        if ROLE == "talkative":
            capabilities["logging"] = {}
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "serverInfo": {"name": ROLE, "version": "1"},
        }
    if method == "ping" or (method == "logging/setLevel" and ROLE == "talkative"):
        return {}
    if method == "tools/list":
        return {"tools": [definition(name) for name in TOOLS]}
    if method == "tools/call":
        text = TOOLS[params["name"]](params.get("arguments", {}))
        return None if text is None else {"content": [{"type": "text", "text": text}]}
    if ROLE == "memo" and method.startswith("resources/"):
        return result_of_memo(method.removeprefix("resources/"), params)
    if ROLE == "excalidraw" and method == "resources/list":
        return {"resources": [RESOURCE]}
    if ROLE == "excalidraw" and method == "resources/read":
        return {"contents": [{"uri": RESOURCE["uri"], "mimeType": "text/html", "text": PAGE}]}
    raise LookupError(method)


def result_of_memo(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request about the memo. Raises LookupError for what is not there."""
    if method == "list":
        return {"resources": [{"uri": MEMO, "name": "memo"}]}
    if method == "templates/list":
        return {"resourceTemplates": []}
    if params["uri"] != MEMO:
        raise LookupError(method)
    if method == "read":
        return {"contents": [{"uri": MEMO, "text": memo["text"]}]}
    (watched.add if method == "subscribe" else watched.discard)(MEMO)
    return {}


def answer(message: dict[str, Any]) -> None:
    """Answer one request; notifications need nothing."""
    if "id" not in message or "method" not in message:
        return
    global request
    request = message
    try:
        result = result_of(request["method"], request.get("params", {}))
    except LookupError:
        send({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
        return
    if result is not None:
        send({"id": request["id"], "result": result})


def daemonise() -> None:
    """Leave a grandchild in a session of its own that holds no pipe of ours and ignores SIGTERM."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    alive("grandchild")
    while True:
        signal.pause()


def main() -> None:
    """Serve until the input ends; the stubborn one goes on then, too."""
    if ROLE == "stubborn":
        daemonise()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        alive("server")
    for line in sys.stdin:
        answer(json.loads(line))
    while ROLE == "stubborn":
        signal.pause()


if __name__ == "__main__":
    if ROLE == "crashing":
        sys.exit(3)
    TOOLS = read_tools()
    main()
