"""One nursery per child: a crash is contained, logged and answered by policy. The one place where that happens.

`except*`, not `except`: a crash during shutdown arrives in a group together with the cancellation. Want of resources is
no crash: the child is run again until there is enough, which nobody counts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from actors.kit import Conditions, Pauses, is_want, reason_of
from actors.life.policy import RestartLog

log = logging.getLogger(__name__)


async def supervise(
    name: str,
    run: Callable[[], Awaitable[None]],
    restarts: RestartLog,
    conditions: Conditions | None = None,
    tell_restart: Callable[[], None] = lambda: None,
) -> bool:
    """Run a child until it returns; restart it when it crashes. False: it crashed too often and was given up.

    `tell_restart` is called before each start that follows a crash.
    """
    conditions = conditions or Conditions()
    pauses = Pauses()
    while True:
        crashed, wanting = False, ""
        try:
            await run()
        except* Exception as group:
            if is_want(group):
                wanting = reason_of(group)
            else:
                log.exception("%s crashed", name)
                crashed = True
        if wanting:
            conditions.begin(name, wanting)
            try:
                await trio.sleep(pauses.next())
            finally:  # it may be told to leave meanwhile
                conditions.end(name)
            continue
        if not crashed:
            return True
        delay = restarts.admit(trio.current_time())
        if delay is None:
            log.error("%s crashed too often and is given up", name)
            return False
        await trio.sleep(delay)
        tell_restart()
