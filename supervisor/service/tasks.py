"""The tasks that clients have: whose each is, where it lives, and how its client calls it.

A client knows a task by a name of ours: random, good for the principal that made it, for as long as its server keeps
the task and `task_max_s` at most. Nothing of it outlives the daemon.

No task is forgotten for those of another client. Of a client that has as many as it may, one that is over makes room
for a new one; if there is none, no call of it becomes a task.
"""

from __future__ import annotations

from typing import Final

import msgspec
import trio

from actors.errors import TooManyCalls
from actors.kit import ClientQuota, Latest, Reply
from actors.messages import Caller, Note, Question, Result
from actors.principal import ClientKey, Principal
from actors.protocol import tasks
from actors.protocol.agreement.versions import Era
from actors.protocol.asking.questions import Visitor
from actors.protocol.tasks import CANCEL, GET, OVER, STATUS, UPDATE, UnknownTask
from supervisor.fleet.peers import DaemonLife
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.rounds import SealedNames
from supervisor.service.client import Client

MAX_TASKS: Final = 4096
"""Of all clients, which share it; see `actors.kit.fairness.quota`."""
_ENDED: Final = "this task is not known any more: its time is over, or it had ended and made room for another one"
_THERE: Final = "the task is at another node of the fleet; ask for it there"
_LOST: Final = "there is no such task; one of before the last start of the daemon is lost, look how far it came"


class HeldTask(msgspec.Struct, eq=False):
    """One task. `own` is its id at its server; `run` the incarnation that alone knows it, empty if others may, too.

    `program` is who has it; `expires` is a moment of the trio clock; `over`: its server said that it has ended.
    """

    name: str
    principal: Principal
    program: ClientKey
    server: str
    own: str
    era: Era
    run: str
    expires: float
    over: bool = False

    def hear(self, said: msgspec.Raw) -> None:
        """Take what the server says of it: a status, or the state that was asked for."""
        told = tasks.read_task(said)
        self.over = self.over or (told is not None and told.status in OVER)

    def rename(self, said: bytes, method: str) -> bytes:
        if method in (GET, CANCEL, UPDATE, STATUS):
            return tasks.with_id(said, self.name)
        return tasks.with_related(said, self.name)


class TaskVoice:
    """The caller of a request about a task: its client hears of the task by our name. Implements `Caller`."""

    def __init__(self, caller: Caller, task: HeldTask) -> None:
        self._caller = caller
        self._task = task

    def note(self, note: Note) -> bool:
        if note.method == STATUS:
            self._task.hear(msgspec.Raw(note.params))
        return self._caller.note(Note(note.method, self._task.rename(note.params, note.method)))

    def ask(self, question: Question) -> Reply[msgspec.Raw]:
        params = self._task.rename(bytes(question.params), question.method)
        return self._caller.ask(msgspec.structs.replace(question, params=msgspec.Raw(params)))

    @property
    def identity(self) -> ClientKey:
        return self._caller.identity

    def visitor(self, question: Question | None = None) -> Visitor | None:
        return self._caller.visitor(question)


class HeldTasks:
    """Those of all clients. `key` is the daemon's."""

    def __init__(self, deployment: Latest[Deployment], key: bytes, life: DaemonLife | None = None) -> None:
        self._deployment = deployment
        self._names = SealedNames(key, b"mcp-task", life=life)
        self._held: dict[str, HeldTask] = {}
        self._quota = ClientQuota(MAX_TASKS)

    def admits(self, client: Client) -> bool:
        """Say whether a call of a client may become a task; one of its own that is over makes room for it."""
        program = client.program
        if self._quota.has_room(program):
            return True
        now = trio.current_time()
        for held in [held for held in self._held.values() if held.expires <= now]:
            self._forget(held)
        if not self._quota.has_room(program):
            ended = next((held for held in self._held.values() if held.over and held.program == program), None)
            if ended is not None:
                self._forget(ended)
        return self._quota.has_room(program)

    def refusal(self, client: Client) -> TooManyCalls:
        mine = self._quota.amount_of(client.program)
        text = f"{mine} tasks of this client are under way, of {MAX_TASKS} for all clients"
        text += "; fetch the results of those that have ended, cancel some, or make the call without a task"
        return TooManyCalls(text)

    def take_created(self, client: Client, server: str, result: Result) -> bytes | None:
        """Keep the task that a result tells of; return the result with our name of it, None if it tells of none."""
        task = tasks.read_created(result.body, result.era)
        if task is None:
            return None
        deployment = self._deployment.value
        lifetime_s = min(task.lifetime_s, deployment.rules_of(server).task_max_s)
        name = self._names.make(client.principal)
        lasts = deployment.is_remote(server) and not deployment.entries[server].replicas
        run = "" if result.era == "modern" and lasts else result.run
        self._held[name] = HeldTask(
            name=name,
            principal=client.principal,
            program=client.program,
            server=server,
            own=task.id,
            era=result.era,
            run=run,
            expires=trio.current_time() + lifetime_s,
            over=task.status in OVER,
        )
        self._quota.add(client.program)
        return tasks.with_id(bytes(result.body), name)

    def find(self, name: str, principal: Principal, era: Era, server: str | None = None) -> HeldTask:
        """Return a task by its name, at the door of a server or of all. Raises `UnknownTask` and `HeldElsewhere`."""
        held = self._held.get(name)
        if held is not None and held.principal != principal:
            held = None
        if held is not None and held.expires <= trio.current_time():
            self._forget(held)
            raise UnknownTask("taskId: the time of this task is over", server=held.server, outcome="unknown")
        if held is None and self._names.is_given(name, principal):
            self._names.check_here(name, principal, UnknownTask(f"taskId: {_THERE}"))
            text = _ENDED if self._names.is_of_this_run(name, principal) else _LOST
            raise UnknownTask(f"taskId: {text}", outcome="unknown")
        if held is None or held.era != era or server not in (None, held.server):
            raise UnknownTask("taskId: there is no such task")
        return held

    def _forget(self, held: HeldTask) -> None:
        del self._held[held.name]
        self._quota.remove(held.program)
