"""Who did what: what a record of the audit says, and how many records equal events make. Pure.

Rules of this file:
- A record has names, ids and counts. It never has a token, a value of the configuration, or arguments of a call: what
  looks like a token of ours is taken out of every text, and every text has a bound.
- What somebody may repeat without end (wrong tokens, pages that a role may not see) is one record for each minute,
  with how often it was.
- Whoever records an action calls `Audit.note` or `Audit.tally` once, where the action passes. Who it is and where from
  stands in `ORIGIN`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from actors.errors import InvalidArguments
from supervisor.identity.requester import ANYBODY, MESSAGE_ID, RequestOrigin

ACTIONS: Final[Mapping[str, str]] = {
    "daemon.start": "the daemon began to serve",
    "daemon.stop": "the daemon ends, by a signal or as nobody used it",
    "configuration.load": "the configuration file was read again and taken over, or refused",
    "configuration.publish": "a configuration was published for the nodes of a fleet, or only compared with that",
    "credential.check": "somebody showed a wrong token: one record for each address and minute",
    "page.ask": "a role does not allow a page: one record for each user, page and minute",
    "token.create": "a token was made",
    "token.revoke": "a token was revoked",
    "token.expire": "a token that had expired made room for others",
    "server.add": "a server was added by a command or a program",
    "server.change": "an entry was changed by a command or a program",
    "server.remove": "a server was removed by a command or a program",
    "server.restart": "the order was given",
    "server.wake": "the order was given",
    "server.sleep": "the order was given",
    "server.refresh": "the order was given",
    "server.enable": "the order was given",
    "server.disable": "the order was given",
    "node.drain": "a node of a fleet was ordered to take no servers any more, or to take some again",
    "login.begin": "a login at a server was begun",
    "login.answer": "a wrong code or address was given for a login: one record for each user, server and minute",
    "login.finish": "a login at a server was finished, or failed",
    "login.forget": "a login at a server was ended, and its tokens forgotten",
    "login.drop": "a login of a user was forgotten, as the configuration does not name them any more",
    "question.answer": "a question of a server or a plugin was answered, by a client, on a page or by a program",
    "tool.confirm": "a user said yes or no to a call of a tool, or nobody did in time",
    "tool.ask_again": "a yes that was given for longer than one call was taken back",
    "tool.approve": "definitions of tools of a server were approved",
    "value.give": "a value of a team or a user was given for a server",
    "value.forget": "such a value was taken back",
    "webhook.subscribe": "events were begun to be posted to an address of a user: which, to which host",
    "webhook.unsubscribe": "a user ended that",
    "tool.refuse": "a call of a tool was refused by a rule or a plugin: one record for each user, tool and minute",
    "tool.call": "a tool was called, where `audit_calls` is on",
    "audit.lose": "so many records could not be written before",
}
"""Every action that is recorded. What stands before the dot is its group."""
GROUPS: Final = frozenset(action.partition(".")[0] for action in ACTIONS)
Outcome = Literal["done", "failed", "refused", "unknown"]
"""`refused`: by a rule, or by the user who was asked; `unknown`: whoever asked did not wait for the end."""
MAX_TALLIED: Final = 64
"""So many different events of a minute have a record of their own; all others of an action share one."""
OTHERS: Final = "and others: too many in this minute to name them all"
MAX_NAME_CHARS: Final = 200
MAX_DETAIL_CHARS: Final = 300
MINUTE_S: Final = 60.0
_READ_CHARS: Final = 65_536
_CREDENTIAL: Final = re.compile(r"mcpv(?:op)?_[0-9A-Za-z_]+|[0-9A-Fa-f]{64,}")
"""Our own tokens and passes, also cut ones, and keys as they are shown."""


class AuditRecord(Struct, frozen=True, kw_only=True, array_like=True):
    """What was done, by whom, from where. It has the columns of its table.

    `id` counts up; None before it is kept. `time` is in unix seconds. `user` is empty for the operator and for the
    daemon itself, whose `principal` is empty, too, as is that of a stranger. `door` is the path that was asked for,
    without a query. `target` is a server, `SERVER:TOOL`, the id of a token or the like, by the action. `request` is the
    JSON-RPC id of the request that it was done with; `count` is more than 1 where events share a record.
    """

    id: int | None = None
    time: float
    action: str
    outcome: Outcome = "done"
    principal: str = ""
    user: str = ""
    team: str = ""
    role: str = ""
    credential: str = ""
    address: str = ""
    door: str = ""
    target: str = ""
    detail: str = ""
    request: str = ""
    count: int = 1


class Audit(Protocol):
    """Where actions are recorded. Neither waits nor raises."""

    def note(
        self,
        action: str,
        target: str = "",
        *,
        outcome: Outcome = "done",
        detail: str = "",
        origin: RequestOrigin | None = None,
    ) -> None:
        """Record an action, of the request that is being served if no other `origin` is given."""

    def tally(
        self, action: str, target: str = "", *, outcome: Outcome, detail: str = "", origin: RequestOrigin | None = None
    ) -> None:
        """Record an action that may be repeated without end: what is equal within a minute shares a record."""


class NoAudit:
    """Implements `Audit` where nothing is recorded."""

    def note(self, action: str, target: str = "", **more: object) -> None:
        """Forget it."""

    def tally(self, action: str, target: str = "", **more: object) -> None:
        """Forget it."""


NO_AUDIT: Final[Audit] = NoAudit()


def record_of(
    origin: RequestOrigin | None, time: float, action: str, target: str, outcome: Outcome, detail: str
) -> AuditRecord:
    """Return the record of an action; of the daemon itself if there is no origin."""
    message = MESSAGE_ID.get()
    record = AuditRecord(
        time=time,
        action=action,
        outcome=outcome,
        target=clean(target, MAX_NAME_CHARS),
        detail=clean(detail, MAX_DETAIL_CHARS),
        request=clean(message.decode("utf-8", "replace"), MAX_NAME_CHARS) if message else "",
    )
    if origin is None:
        return record
    requester = origin.requester
    known = requester is not None and requester != ANYBODY
    person = requester.person if requester is not None else ANYBODY.person
    return replace(
        record,
        principal=str(person.principal) if known else "",
        user=person.user,
        team=person.team,
        role=person.role if known else "",
        credential=requester.credential if requester is not None else "",
        address=clean(origin.address, MAX_NAME_CHARS),
        door=clean(origin.path, MAX_NAME_CHARS),
    )


def clean(text: str, most: int) -> str:
    """Return a text as a record may have it: without credentials, printable, at most so many characters."""
    text = _CREDENTIAL.sub("***", text[:_READ_CHARS])
    if not text.isprintable():
        text = "".join(each if each.isprintable() else "?" for each in text)
    return text if len(text) <= most else f"{text[: most - 3]}..."


class Tallies:
    """Equal events of a minute as one record, with how many they were. Of each action there are `MAX_TALLIED` at most.

    A minute is one of the clock that the records have, which may also go back.
    """

    def __init__(self) -> None:
        self._minute = 0
        self._counts: dict[AuditRecord, tuple[float, int]] = {}
        self._different: dict[str, int] = {}

    def add(self, record: AuditRecord) -> list[AuditRecord]:
        """Count an event; return the records of an earlier minute, which is over with it."""
        over = self.over(record.time)
        self._minute = _minute_of(record.time)
        key = replace(record, time=0.0, request="")
        if key not in self._counts:
            different = self._different.get(record.action, 0)
            if different >= MAX_TALLIED:
                key = AuditRecord(time=0.0, action=record.action, outcome=record.outcome, detail=OTHERS)
            else:
                self._different[record.action] = different + 1
        first, count = self._counts.get(key, (record.time, 0))
        self._counts[key] = (first, count + record.count)
        return over

    def over(self, now: float) -> list[AuditRecord]:
        """Return the records of a minute that is over by now; none while it lasts."""
        return self.take() if self._counts and _minute_of(now) != self._minute else []

    def take(self) -> list[AuditRecord]:
        """Return all records that there are, each with the time of the first of its events."""
        records = [replace(key, time=first, count=count) for key, (first, count) in self._counts.items()]
        self._counts, self._different = {}, {}
        return records


def _minute_of(moment: float) -> int:
    return int(moment // MINUTE_S)


class AuditQuery(Struct, frozen=True, kw_only=True):
    """Which records are wanted: of a user, of an action or of a group of them, since a moment in unix seconds.

    `before` is the id that all of them are below.
    """

    user: str = ""
    action: str = ""
    since: float = 0.0
    before: int | None = None

    def takes(self, record: AuditRecord) -> bool:
        """Say whether a record that is kept is one of these; the table is asked for the same in its own words."""
        group = record.action.partition(".")[0]
        return (
            (not self.user or record.user == self.user)
            and (self.action in ("", record.action, group))
            and record.time >= self.since
            and (self.before is None or (record.id is not None and record.id < self.before))
        )


def check_action(action: str) -> None:
    """Raise `InvalidArguments` for what is neither empty, an action, nor a group of actions."""
    if action and action not in ACTIONS and action not in GROUPS:
        known = [*sorted(GROUPS), *ACTIONS]
        raise InvalidArguments(
            f"there is no action {clean(action, MAX_NAME_CHARS)!r}; write one of {', '.join(known)}",
            details={"parameter": "action", "known": known},
        )
