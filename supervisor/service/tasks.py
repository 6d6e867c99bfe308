"""The tasks that clients have: whose each is, where it lives, and how its client calls it.

A client knows a task by a name of ours: random, good for the principal that made it, for as long as its server keeps
the task and `task_max_s` at most. Nothing of it outlives the daemon.
"""

from __future__ import annotations

import secrets
from collections.abc import Hashable
from typing import Final

import msgspec
import trio

from actors.kit import Latest, Reply
from actors.messages import Caller, Note, Question, Result
from actors.principal import Principal
from actors.protocol import tasks
from actors.protocol.tasks import CANCEL, GET, STATUS, UPDATE, UnknownTask
from actors.protocol.versions import Era
from actors.protocol.visits import Visitor
from supervisor.servers.deployment import Deployment

MAX_TASKS: Final = 4096
MAX_TASKS_OF_ONE: Final = 1024
"""Of one principal; then its oldest one is forgotten."""
_BOOT_BYTES: Final = 6
_NAME_BYTES: Final = 18


class HeldTask(msgspec.Struct, frozen=True):
    """One task. `own` is its id at its server; `run` the incarnation that alone knows it, empty if others may, too.

    `expires` is a moment of the trio clock.
    """

    name: str
    principal: Principal
    server: str
    own: str
    era: Era
    run: str
    expires: float

    def renamed(self, said: bytes, method: str) -> bytes:
        """Return what the server said of it, as an answer to a method or by itself, under our name."""
        if method in (GET, CANCEL, UPDATE, STATUS):
            return tasks.with_id(said, self.name)
        return tasks.with_related(said, self.name)


class TaskVoice:
    """The caller of a request about a task: its client hears of the task by our name. Implements `Caller`."""

    def __init__(self, caller: Caller, task: HeldTask) -> None:
        self._caller = caller
        self._task = task

    def note(self, note: Note) -> bool:
        """Tell the client something; see `Caller.note`."""
        return self._caller.note(Note(note.method, self._task.renamed(note.params, note.method)))

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        """Ask the client something; see `Caller.ask`."""
        params = self._task.renamed(bytes(question.params), question.method)
        return self._caller.ask(msgspec.structs.replace(question, params=msgspec.Raw(params)))

    @property
    def identity(self) -> Hashable:
        """Who made the call; see `Caller.identity`."""
        return self._caller.identity

    def visitor(self, question: Question | None = None) -> Visitor | None:
        """Return who hears of the end of a visit; see `Caller.visitor`."""
        return self._caller.visitor(question)


class HeldTasks:
    """Those of all clients."""

    def __init__(self, deployment: Latest[Deployment]) -> None:
        self._deployment = deployment
        self._boot = secrets.token_urlsafe(_BOOT_BYTES)
        self._held: dict[str, HeldTask] = {}

    def made(self, principal: Principal, server: str, result: Result) -> bytes | None:
        """Keep the task that a result tells of; return the result with our name of it, None if it tells of none."""
        task = tasks.created(result.body, result.era)
        if task is None:
            return None
        self._make_room(principal)
        deployment = self._deployment.value
        lifetime_s = min(task.lifetime_s, deployment.task_max_s(server))
        name = f"{self._boot}.{secrets.token_urlsafe(_NAME_BYTES)}"
        run = "" if result.era == "modern" and deployment.is_remote(server) else result.run
        expires = trio.current_time() + lifetime_s
        self._held[name] = HeldTask(name, principal, server, task.id, result.era, run, expires)
        return tasks.with_id(bytes(result.body), name)

    def find(self, name: str, principal: Principal, era: Era, server: str | None = None) -> HeldTask:
        """Return a task by its name, at the door of a server or of all. Raises `UnknownTask`."""
        held = self._held.get(name)
        if held is not None and held.expires <= trio.current_time():
            held = self._held.pop(name)
            raise UnknownTask("taskId: the time of this task is over", server=held.server)
        if held is None or held.principal != principal or held.era != era or server not in (None, held.server):
            if held is None and "." in name and not name.startswith(f"{self._boot}."):
                text = "there is no such task; one of before the last start of the daemon is lost, look how far it came"
                raise UnknownTask(f"taskId: {text}", outcome="unknown")
            raise UnknownTask("taskId: there is no such task")
        return held

    def _make_room(self, principal: Principal) -> None:
        now = trio.current_time()
        self._held = {name: held for name, held in self._held.items() if held.expires > now}
        of_one = [name for name, held in self._held.items() if held.principal == principal]
        if len(of_one) >= MAX_TASKS_OF_ONE:
            del self._held[of_one[0]]
        elif len(self._held) >= MAX_TASKS:
            del self._held[next(iter(self._held))]
