"""A server where users have accounts, and its authorization server. It says with whose token it was called.

A user says yes with a code that names them, `code-of-NAME`; tokens are `NAME-1`, `NAME-2` and so on.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from urllib.parse import parse_qs

from tests.fakes.issuer_server import MCP, IssuerServer, Reply
from tests.fakes.remote_server import Request

TOOL = {"name": "who", "description": "Tells whose account it is", "inputSchema": {"type": "object"}}


class LoginSite(IssuerServer):
    """`refreshed` counts renewals by user, `called` is with whose token each call of the tool came."""

    def __init__(self) -> None:
        super().__init__()
        self.refreshed: Counter[str] = Counter()
        self.called: list[str] = []
        self.valid: set[str] = set()
        self.revoked: list[str] = []

    def reply(self, request: Request) -> Reply:
        path = request.path.partition("?")[0]
        if path == "/token":
            return self._issue({name: values[0] for name, values in parse_qs(request.body.decode()).items()})
        if path == "/revoke":
            self.revoked.append(parse_qs(request.body.decode())["token"][0])
        if path == MCP:
            return self._serve(request)
        return super().reply(request)

    def expire(self, user: str) -> None:
        """Let the access tokens of a user end."""
        self.valid = {token for token in self.valid if not token.startswith(f"{user}-")}

    def _issue(self, form: dict[str, str]) -> Reply:
        if form["grant_type"] == "refresh_token":
            user = form["refresh_token"].removeprefix("refresh-")
            self.refreshed[user] += 1
        elif form.get("code", "").startswith("code-of-"):
            user = form["code"].removeprefix("code-of-")
        else:
            return Reply({"error": "invalid_grant"}, 400)
        token = f"{user}-{self.refreshed[user] + 1}"
        self.valid.add(token)
        return Reply({"access_token": token, "token_type": "Bearer", "refresh_token": f"refresh-{user}"})

    def _serve(self, request: Request) -> Reply:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.valid:
            return Reply(status=401, headers={"www-authenticate": 'Bearer scope="read"'})
        if request.verb != "POST":
            return Reply(status=405)
        message = request.message
        if "id" not in message:
            return Reply(status=202)
        return Reply({"jsonrpc": "2.0", "id": message["id"], **self._result(message, token)})

    def _result(self, message: dict[str, Any], token: str) -> dict[str, Any]:
        match message["method"]:
            case "initialize":
                info = {"name": "site", "version": "1"}
                protocol = message["params"]["protocolVersion"]
                return {"result": {"protocolVersion": protocol, "capabilities": {"tools": {}}, "serverInfo": info}}
            case "tools/list":
                return {"result": {"tools": [TOOL]}}
            case "tools/call":
                self.called.append(token)
                return {"result": {"content": [{"type": "text", "text": json.dumps({"token": token})}]}}
            case _:
                return {"error": {"code": -32601, "message": "no such method"}}
