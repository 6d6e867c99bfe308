"""What nodes of a fleet say to one another: the project's own messages, as MessagePack arrays. Pure.

A call is known by a number that whoever asks gave it. What a server said is passed through as it wrote it: bytes in
bytes. A text that is long travels in parts, so that it holds up no other call.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from actors.messages import (
    CallServer,
    Refreshed,
    RefreshServer,
    RestartServer,
    SleepServer,
    WakeServer,
)
from actors.principal import Principal
from actors.protocol.agreement.versions import Era
from actors.protocol.exchanges import Interest
from supervisor.fleet.records import Place

PART_BYTES: Final = 128 * 1024
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
"""Of one frame: what is said beside a text, such as the definition of what a client can be asked."""
MAX_TEXT_BYTES: Final = 128 * 1024 * 1024
"""Of a text that goes in parts."""

HeaderLines = tuple[tuple[bytes, bytes], ...]
"""Header lines of HTTP: names in lower case, and values."""
OrderKind = Literal["wake", "restart", "refresh", "sleep"]
ForLaunch = CallServer | WakeServer | RestartServer | RefreshServer | SleepServer


class FleetFrame(msgspec.Struct, frozen=True, array_like=True):
    """One message between nodes. `id`: the call that it is about."""

    id: int


# From whoever asks ----------------------------------------------------------------------------------------------------


class CallSent(FleetFrame, frozen=True, tag=1):
    """A `CallServer` for a launch. `client` is who hears of it, `visits`: they hear of the end of visits, too.

    `meta` has the context of its trace. Whether it `lasts` is counted at the door alone.
    """

    launch: str
    method: str
    members: bytes
    meta: bytes
    name: str
    interest: Interest
    retry: bytes
    as_task: bool
    resumes: bool
    by_requests: bool
    run: str
    deadline_s: float
    principal: Principal
    client: tuple[Principal, str] | None
    visits: bool
    by_model: bool = False
    in_turn: bool = False
    definition: bytes = b""


class OrderSent(FleetFrame, frozen=True, tag=2):
    """An order for a launch; `operator` and `urgent` as in its message."""

    launch: str
    order: OrderKind
    principal: Principal
    operator: bool = False
    urgent: bool = True


class Abandoned(FleetFrame, frozen=True, tag=3):
    """Nobody waits for an answer any more, for a `reason` if the client gave one."""

    reason: str = ""


class QuestionSettled(FleetFrame, frozen=True, tag=4):
    """The client has answered a question, or cannot: then there is an `error`."""

    question: int
    result: bytes = b""
    error: SentError | None = None


class ClientProgressed(FleetFrame, frozen=True, tag=5):
    """What the client tells of its work on a question, the params of a notification."""

    question: int
    params: bytes


class RequestSent(FleetFrame, frozen=True, tag=6):
    """A request of a client that is answered there; `head` is all but its `body`, which ends with this, after parts."""

    head: bytes
    body: bytes = b""


class RequestLeft(FleetFrame, frozen=True, tag=7):
    """The client of a request has left."""


class PartTaken(FleetFrame, frozen=True, tag=8):
    """So many bytes of an answer were taken."""

    size: int


# From whoever is asked ------------------------------------------------------------------------------------------------


class ResultSent(FleetFrame, frozen=True, tag=11):
    """A `Result`, whose body ends with this, after parts; by this `fence` the launch was owned all the time."""

    fence: int
    body: bytes
    era: Era
    run: str
    waited_s: float
    woke: bool
    lost: str = ""


class OrderDone(FleetFrame, frozen=True, tag=12):
    """An order is done; what a refresh has found."""

    fence: int
    refreshed: Refreshed | None = None


class Failed(FleetFrame, frozen=True, tag=13):
    """The call has failed."""

    error: SentError


class MovedOn(FleetFrame, frozen=True, tag=14):
    """Nothing was done: the launch is at another place; None if nobody owns it now."""

    place: Place | None


class NoteSent(FleetFrame, frozen=True, tag=15):
    """A `Note` for the client of a call."""

    method: str
    params: bytes


class QuestionSent(FleetFrame, frozen=True, tag=16):
    """A `Question` for the client of a call; `progress`: its server wants to hear of the work on it."""

    question: int
    method: str
    params: bytes
    progress: bool


class QuestionTakenBack(FleetFrame, frozen=True, tag=17):
    """Nobody waits for the answer to a question any more."""

    question: int


class VisitEnded(FleetFrame, frozen=True, tag=18):
    """A visit of this id is over, of the client of a call that may be over itself."""

    visit: str


class BodyPart(FleetFrame, frozen=True, tag=19):
    """A part of the body of a result, or of the members of a call, which are long; what ends them has the rest."""

    part: bytes


class SignOfLife(FleetFrame, frozen=True, tag=20):
    """A sign of life; whoever gets one that was `asked` for sends one back."""

    asked: bool = True


class LinkClosing(FleetFrame, frozen=True, tag=21):
    """The node ends: whoever asks sends nothing more over this link, and hangs up when it has all its answers."""


class AnswerBegun(FleetFrame, frozen=True, tag=22):
    """The head of the answer to a request. `whole`: all of it follows, else it goes on as long as it does."""

    status: int
    lines: HeaderLines
    whole: bool


class AnswerPart(FleetFrame, frozen=True, tag=23):
    """A part of its body."""

    part: bytes


class AnswerEnded(FleetFrame, frozen=True, tag=24):
    """It has all of its body."""


class ResourceChanged(FleetFrame, frozen=True, tag=25):
    """A resource of a launch has changed, to which clients of whoever asks are subscribed."""

    launch: str
    uri: str


class LaunchMoved(FleetFrame, frozen=True, tag=26):
    """The launch is here no longer, to whose resources clients of whoever asks are subscribed."""

    launch: str


class SentError(msgspec.Struct, frozen=True, array_like=True):
    """A failure on its way: the class by name, its row of the taxonomy, and what its instance has.

    `data` is that of the error of a server (`RemoteError`).
    """

    name: str
    code: int
    message: str
    fields: bytes
    data: bytes = b""
    kind: str = ""
    http_status: int = 200
    retryable: bool = False


class UnknownFrame(FleetFrame, frozen=True, tag=0):
    """Stands for one of a later version, which means nothing here. What needs an answer is not sent to a node whose
    `Node.version` does not know it.
    """


Asking = (
    UnknownFrame
    | CallSent
    | OrderSent
    | Abandoned
    | QuestionSettled
    | ClientProgressed
    | RequestSent
    | RequestLeft
    | PartTaken
    | BodyPart
    | SignOfLife
)
Answering = (
    UnknownFrame
    | ResultSent
    | OrderDone
    | Failed
    | MovedOn
    | NoteSent
    | QuestionSent
    | QuestionTakenBack
    | VisitEnded
    | BodyPart
    | SignOfLife
    | LinkClosing
    | AnswerBegun
    | AnswerPart
    | AnswerEnded
    | ResourceChanged
    | LaunchMoved
)
AnyFrame = Asking | Answering
