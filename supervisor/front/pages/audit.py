"""What people did, as it was recorded (`/api/audit`)."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from actors.errors import InvalidArguments
from supervisor import operations
from supervisor.config.keys import name_fault
from supervisor.front.pages.performing import performs
from supervisor.front.pages.view import View
from supervisor.identity.audit import AuditQuery, check_action

_MAX_RECORDS: Final = 500
"""Of one page."""


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which records: of a `user`, of an `action` or a group of them (`token`), `since` a moment in unix seconds.

    `before` is the `next` of the page before this one.
    """

    user: str = ""
    action: str = ""
    since: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    before: Annotated[int, msgspec.Meta(ge=1)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MAX_RECORDS)] = 100


@performs(operations.AUDIT)
async def audit(view: View, query: AuditFilter) -> Any:
    """Show what people did: `records`, the newest first, and the `next` to go on before, null at the end.

    `dropped` counts by action those that were removed as they were too many; `lost` those that could not be
    written since the daemon was started.
    """
    check_action(query.action)
    if query.user and (fault := name_fault(query.user)):
        raise InvalidArguments(f"the parameter 'user': {fault}", details={"parameter": "user"})
    selected = AuditQuery(user=query.user, action=query.action, since=query.since, before=query.before)
    assert view.trail is not None
    page = await view.trail.page(selected, query.limit)
    records = [msgspec.structs.asdict(record) for record in page.records]
    status = msgspec.structs.asdict(view.trail.status())
    return {"records": records, "next": page.next, "dropped": page.dropped, **status}
