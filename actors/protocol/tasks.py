"""Tasks: calls whose results are fetched later, as the two eras write them. Pure.

(MCP 2025-11-25, basic/utilities/tasks; the extension `io.modelcontextprotocol/tasks` of 2026-07-28, SEP-2663.) They are
different protocols: a legacy client wants a call as a task, a modern server makes one where it likes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from actors.errors import InvalidArguments
from actors.protocol.agreement.versions import META_PREFIX, Era
from actors.protocol.asking.input_required import InputRequest, kind_of
from actors.protocol.wire import json
from actors.protocol.wire.jsonrpc import encode

SINCE: Final = "2025-11-25"
"""The first revision that has them."""
RELATED: Final = META_PREFIX + "related-task"
"""In `_meta` of whatever a legacy peer says about a task."""
EXTENSION: Final = META_PREFIX + "tasks"
STATUS: Final = "notifications/tasks/status"
CALL: Final = "tools/call"
"""The only request that can be made as a task."""
GET: Final = "tasks/get"
RESULT: Final = "tasks/result"
UPDATE: Final = "tasks/update"
CANCEL: Final = "tasks/cancel"
METHODS: Final[dict[Era, frozenset[str]]] = {
    "legacy": frozenset({GET, RESULT, CANCEL}),
    "modern": frozenset({GET, UPDATE, CANCEL}),
}
"""What is asked about one task."""
OF_ONE: Final = METHODS["legacy"] | METHODS["modern"]
OVER: Final = frozenset({"completed", "failed", "cancelled"})
"""States that do not change any more."""
MAX_ID_CHARS: Final = 1024
MAX_CREATED_BYTES: Final = 64 * 1024
"""Of a result that tells of a new task; what is larger is a result."""
PACE_S: Final = (0.1, 10.0)
"""The least and the longest pause between two requests about a task, whatever its server suggests."""
DEFAULT_PACE_S: Final = 1.0

_Status = Literal["working", "input_required", "completed", "failed", "cancelled"]


class UnknownTask(InvalidArguments, kind="not_found"):
    """The client has no task of that id at this door, or it was lost with its server: `outcome` is `unknown` then."""


class Task(msgspec.Struct, frozen=True):
    """What a server says of a task; `ttl` and `pollInterval` of the legacy era have other names in the modern one.

    `result`, `error` and `requests` are there in the modern era only, each in one state.
    """

    id: str = msgspec.field(name="taskId")
    status: _Status
    message: str | None = msgspec.field(name="statusMessage", default=None)
    ttl: float | None = None
    ttl_ms: float | None = msgspec.field(name="ttlMs", default=None)
    poll: float | None = msgspec.field(name="pollInterval", default=None)
    poll_ms: float | None = msgspec.field(name="pollIntervalMs", default=None)
    result: msgspec.Raw = json.NO_RAW
    error: msgspec.Raw = json.NO_RAW
    requests: dict[str, InputRequest] = msgspec.field(name="inputRequests", default_factory=dict)

    @property
    def lifetime_s(self) -> float:
        """For how long its server keeps it, from its beginning; infinite if it does not say."""
        given = self.ttl_ms if self.ttl is None else self.ttl
        return math.inf if given is None else max(given / 1000, 0.0)

    @property
    def pause_s(self) -> float:
        given = self.poll_ms if self.poll is None else self.poll
        least, most = PACE_S
        return DEFAULT_PACE_S if given is None else min(max(given / 1000, least), most)


_task = msgspec.json.Decoder(Task)
_MARK: Final = b'"task"'
_RELATED_MARK: Final = RELATED.encode()


def speaks(capabilities: msgspec.Raw, era: Era) -> bool:
    """Say whether who declares these capabilities can work on calls of tools as tasks, in the way of an era."""
    path = ("extensions", EXTENSION) if era == "modern" else ("tasks", "requests", "tools", "call")
    return bool(json.at(capabilities, *path))


def read_created(result: msgspec.Raw, era: Era) -> Task | None:
    """Return the task that was made instead of a result; None if this is a result, or tells of no proper task."""
    body = bytes(result)
    if len(body) > MAX_CREATED_BYTES or _MARK not in body:
        return None
    if era == "legacy":
        return read_task(json.at(body, "task"))
    return read_task(result) if kind_of(result) == "task" else None


def read_task(said: msgspec.Raw) -> Task | None:
    """Return what a result, or the params of a notification, tells of a task; None if that cannot be read."""
    task = json.read_or(_task, said, None)
    return task if task is not None and 0 < len(task.id) <= MAX_ID_CHARS else None


def related_task(said: msgspec.Raw) -> str:
    """Return which task something is about, by its `_meta`; empty if it is about none."""
    return json.text_at(said, "_meta", RELATED, "taskId") if _RELATED_MARK in bytes(said) else ""


def with_related(said: bytes, id_: str) -> bytes:
    """Return what is said about a task under another id of it; without any if that is empty."""
    return json.with_meta(said, RELATED, encode({"taskId": id_}) if id_ else b"")


def with_id(said: bytes, id_: str) -> bytes:
    """Return what tells of a task, or that it was made, under another id; as it is if it tells of none."""
    try:
        members = json.read(json.MEMBERS, said)
        if "taskId" in members:
            return encode({**members, "taskId": id_})
        inner = json.read(json.MEMBERS, members["task"])
    except (json.UnreadableJson, KeyError):
        return said
    return encode({**members, "task": {**inner, "taskId": id_}})


def legacy_capability(capabilities: msgspec.Raw) -> dict[str, Any]:
    """Return what a client of a legacy server is told of its tasks: what gets through us.

    Not that they can be listed: those of other clients would be among them.
    """
    cancel: dict[str, Any] = {"cancel": {}} if json.at(capabilities, "tasks", "cancel") else {}
    return {**cancel, "requests": {"tools": {"call": {}}}}


@lru_cache(maxsize=128)
def with_extension(capabilities: bytes) -> bytes:
    """Return the capabilities of a client, a JSON object, with that for tasks of the modern era."""
    members = json.MEMBERS.decode(capabilities)
    extensions = json.MEMBERS.decode(members.get("extensions", b"{}"))
    return encode({**members, "extensions": {**extensions, EXTENSION: {}}})
