"""What servers wrote, as pages: of one (`/api/servers/{server}/logs`), and of all that somebody may see (`/api/logs`).

- Logs are the server's own text: without secrets, unprintable characters escaped; show it, never run it.
- A member sees the logs of launches that are theirs alone, and of those what came while that was so: what a launch
  writes that others have as well may be about their calls. Whoever may look at everything sees it all.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from quart import abort

from actors.launch import is_own
from supervisor import operations
from supervisor.front.pages.performing import performs
from supervisor.front.pages.rights import REQUESTER
from supervisor.front.pages.view import View
from supervisor.identity.people import Person
from supervisor.servers.journals.files import MAX_GREP_CHARACTERS, Wanted

MAX_LINES: Final = 1000
"""Of one page, and of one message of a follower."""

Grep = Annotated[str, msgspec.Meta(max_length=MAX_GREP_CHARACTERS)]
Since = Annotated[float, msgspec.Meta(ge=0)]


class AllLogsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the newest lines a page has, `since` a moment in unix seconds, with the text `grep` in them."""

    lines: Annotated[int, msgspec.Meta(ge=0, le=MAX_LINES)] = 100
    since: Since = 0.0
    grep: Grep = ""


class LogQuery(AllLogsQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same, and the number `before` which they are: the `before` of the page of newer ones."""

    before: Annotated[int, msgspec.Meta(ge=0)] | None = None


@performs(operations.SERVER_LOGS)
async def server_logs(view: View, query: LogQuery, server: str) -> Any:
    """Show the newest lines of a log; `newest` is the number to follow from, `before` leads to older ones.

    A member sees that of a server which is started for them alone. `docs/reference/logs.md` has the parameters.
    """
    person = REQUESTER.get().person
    launch = await find_log(view, person, server)
    if launch is None:
        abort(404)
    journal = view.logs.journals.find(launch)
    newest = journal.newest.value if journal is not None else 0
    asked = Wanted(**msgspec.structs.asdict(query), user=member_of(person))
    page = await view.logs.page([launch], asked, view.launches.mask_of)
    lines = [{name: getattr(line, name) for name in ("number", "time", "source", "text")} for line in page.lines]
    before = page.lines[0].number if lines and len(lines) == query.lines else None
    return {"server": server, "newest": newest, "lines": lines, "before": before, "complete": page.complete}


@performs(operations.LOGS)
async def logs(view: View, query: AllLogsQuery) -> Any:
    """Show the newest lines of all logs by time, each with its `server`; `until` is the moment to follow from.

    A member sees those of servers that are started for them alone.
    """
    person = REQUESTER.get().person
    await view.seen_by(person)  # so that it is known who has which launch
    until = view.clock()
    asked = Wanted(**msgspec.structs.asdict(query), user=member_of(person))
    page = await view.logs.page(find_logs(view, person), asked, view.launches.mask_of)
    lines = [line for line in page.lines if line.time <= until]  # what came meanwhile is for a follower
    return {"until": until, "lines": lines, "complete": page.complete}


def member_of(person: Person) -> str | None:
    """Return whose lines alone somebody may see, None for anybody's."""
    return None if person.may("auditor") else person.user


async def find_log(view: View, person: Person, server: str) -> str | None:
    """Return the launch that somebody means by the name of a server; None if there is none whose log they may see.

    Raises `UnknownServer`. A checkpoint.
    """
    if person.may("auditor"):
        view.control.check(server)
        return server
    await view.seen_by(person)  # so that it is known who has which launch
    launch = next((own.name for own in person.rights.launches if own.server == server and own.name), "")
    return launch if launch and view.launches.people_of(launch) == [person.user] else None


def find_logs(view: View, person: Person) -> list[str]:
    """Return the launches whose logs somebody may see, of whom `View.seen_by` was asked before."""
    if person.may("auditor"):
        return view.logs.journals.names()
    theirs = (own.name for own in person.rights.launches if own.name)
    return [name for name in theirs if is_own(name) and view.launches.people_of(name) == [person.user]]
