"""A server with skills, by the text of the extension (SEP-2640), and what a test changes of it."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from actors.protocol.listing import SKILLS
from tests.fakes.whole_server import WholeServer

REFUNDS = "skill://billing/refunds"


def manifest(name: str = "refunds", text: str = "See `examples/email.md`.") -> bytes:
    """A `SKILL.md` with what `entry` says of it."""
    return f"---\nname: {name}\ndescription: Refund a customer by the rules.\n---\n\n{text}\n".encode()


FILES = {
    "SKILL.md": manifest(),
    "examples/email.md": "Dear customer, here are 5 €.\n".encode(),
    "logo.png": b"\x89PNG\r\n\x1a\n\x00\xff",
}


def file(uri: str, data: bytes) -> dict[str, Any]:
    return {"uri": uri, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}


def entry(root: str = REFUNDS, files: dict[str, bytes] | None = None, **frontmatter: Any) -> dict[str, Any]:
    """The entry of a skill with these files; without any it is dynamic."""
    said = {"name": root.rpartition("/")[2], "description": "Refund a customer by the rules.", **frontmatter}
    resources = [file(f"{root}/{name}", data) for name, data in files.items()] if files is not None else "dynamic"
    return {"uri": f"{root}/SKILL.md", "frontmatter": said, "resources": resources}


@dataclass
class SkillServer(WholeServer):
    """`listed` are entries, `given` files by their URIs, `unlisted` entries that only `skills/get` has."""

    listed: list[Any] = field(default_factory=lambda: [entry(files=FILES)])
    unlisted: list[Any] = field(default_factory=list)
    given: dict[str, bytes] = field(default_factory=lambda: {f"{REFUNDS}/{name}": it for name, it in FILES.items()})
    directory_read: bool = True

    def __post_init__(self) -> None:
        setting = {"directoryRead": True} if self.directory_read else {}
        self.capabilities = {"resources": {}, "tools": {}, "extensions": {SKILLS: setting}}

    def _result(self, method: str, params: Any) -> Any:
        modern = {"resultType": "complete", "ttlMs": 7, "cacheScope": "public"} if self.era == "modern" else {}
        uri = params.get("uri", "")
        match method:
            case "skills/list":
                return {**modern, "skills": self.listed}
            case "skills/get":
                found = [each for each in (*self.listed, *self.unlisted) if each["uri"] == uri]
                return {**modern, "skill": found[0]} if found else None
            case "resources/directory/read":
                kind = {"resultType": "complete"} if modern else {}
                names = [name.removeprefix(f"{uri}/") for name in self.given if name.startswith(f"{uri}/")]
                files = [{"uri": f"{uri}/{name}", "name": name} for name in names if "/" not in name]
                return {**kind, "resources": files}
            case "resources/read" if (data := self.given.get(uri)) is not None:
                try:
                    content = {"text": data.decode()}
                except UnicodeDecodeError:
                    content = {"blob": base64.b64encode(data).decode()}
                return {**modern, "contents": [{"uri": uri, **content}]}
        return super()._result(method, params)

    def _answer(self, method: str, params: Any) -> bytes:
        if method == "skills/get" and self._result(method, params) is None:
            return b'"error":' + json.dumps({"code": -32602, "message": "no such skill"}).encode()
        return super()._answer(method, params)
