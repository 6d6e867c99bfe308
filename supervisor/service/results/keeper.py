"""Results that are over their budget, kept for whoever made the call, and read piece by piece.

A program gets them whole, if it says so in the `_meta` of its call (`WHOLE`); at the doors where a client was shown
definitions of tools results pass as they are, so what an output schema promises holds. What cannot be kept passes
whole, too: nothing of a result is lost.

In memory, for a time, and for the session of its call: `Exchange.identity`, and a name that nobody can guess.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final
from urllib.parse import quote, unquote

import msgspec
import trio

from actors.errors import InvalidArguments
from actors.kit import ClientQuota, Latest
from actors.kit.fairness.quota import divide
from actors.principal import ClientKey
from supervisor.fleet.peers import DaemonLife, life_in
from supervisor.host.workbench import Workbench
from supervisor.metatools.texts import estimate_tokens
from supervisor.servers.deployment import Deployment
from supervisor.service.asking.exchange import Exchange
from supervisor.service.fitting.relay import is_whole, not_found, with_text
from supervisor.service.results import picks
from supervisor.service.results.cutting import SCHEME, LongText, as_text, cut, left_out, long_text, size_of
from supervisor.service.results.picks import Path, pick, selectors, with_note

# Reading a kept result: what an address asks for, and the lines that answer it within a budget of tokens.
#
# `mcpvisor-result://ID` has the beginning, `?lines=120-180` (also `120-`, `120`, and `-20` for the last twenty) these
# lines, `?search=WORDS` the lines that have these words, `?path=$.items[0]` a part of JSON. A search or a path may be
# narrowed by `&lines=`.

MAX_SEARCH_CHARS: Final = 500
_QUERY: Final = re.compile(r"[?&](lines|search|path)=")
_LINES: Final = re.compile(r"(?P<first>[1-9]\d{0,8})(?:(?P<open>-)(?P<last>[1-9]\d{0,8})?)?|-(?P<end>[1-9]\d{0,8})")
HOW: Final = "?lines=1-80, ?search=WORDS or, of JSON, ?path=$.items[0:5]"
_PLAIN: Final = " /:=+'\",;()[]{}<>$*@!|"
"""What need not be quoted in the words of a search."""
_ALL: Final = (1, 1_000_000_000)


class PartQuery(msgspec.Struct, frozen=True):
    """`id` of a result; `lines` from the end, if the first is negative."""

    id: str
    lines: tuple[int, int] = _ALL
    search: str = ""
    path: str = ""


class ResultPart(msgspec.Struct, frozen=True):
    """`text` is what was asked for, as it is there; `note` says which part that is and how to go on."""

    text: str
    note: str
    is_json: bool = False


def read_address(uri: str) -> PartQuery:
    """Return what an address asks for. Raises `InvalidArguments`."""
    places = [*_QUERY.finditer(uri)]
    id_ = uri[len(SCHEME) : places[0].start() if places else len(uri)]
    ends = [*(place.start() for place in places[1:]), len(uri)]
    given = {place[1]: unquote(uri[place.end() : end]) for place, end in zip(places, ends, strict=False)}
    if "?" in id_ or "&" in id_:
        raise InvalidArguments(f"a result is read by {HOW}")
    search = given.get("search", "")
    if len(search) > MAX_SEARCH_CHARS or "\n" in search:
        raise InvalidArguments(f"'search' takes words of one line, {MAX_SEARCH_CHARS} characters at the most")
    return PartQuery(
        id_.strip("/"), _lines(given["lines"]) if "lines" in given else _ALL, search, given.get("path", "")
    )


def answer(kept: LongText, asked: PartQuery, tokens: int) -> ResultPart:
    """Return what an address asks for, as much as fits. Raises `InvalidArguments` for what is not there."""
    kept = _part(kept, asked.path) if asked.path else kept
    first, last = asked.lines
    first, last = (max(1, kept.lines + first + 1), kept.lines) if first < 0 else (first, min(last, kept.lines))
    if first > kept.lines:
        raise InvalidArguments(f"there are {kept.lines} lines only")
    if asked.search:
        return _search(kept, asked, first, last, tokens)
    shown = kept.last_within(first, last, tokens)
    text = as_text(kept.between(first, shown))
    more = f"; go on with lines={shown + 1}-{last}" if shown < last else ""
    whole = kept.is_json and first == 1 and shown == kept.lines
    return ResultPart(text, f"lines {first}-{shown} of {kept.lines}{more}", whole)


def _lines(text: str) -> tuple[int, int]:
    match = _LINES.fullmatch(text.strip())
    if match is None:
        raise InvalidArguments("'lines' is a number or a range of lines, as in lines=120-180, lines=120- or lines=-20")
    if match["end"]:
        return -int(match["end"]), _ALL[1]
    first = int(match["first"])
    last = int(match["last"]) if match["last"] else _ALL[1] if match["open"] else first
    if last < first:
        raise InvalidArguments(f"'lines' ends before it begins: {first}-{last}")
    return first, last


def _part(kept: LongText, path: str) -> LongText:
    if not kept.is_json:
        raise InvalidArguments("this result is not read as JSON: it is none, or too large; use lines or search")
    try:
        value = picks.select(kept.value(), picks.read(path))
    except picks.BadPath as error:
        raise InvalidArguments(str(error)) from None
    return long_text(value.encode() if isinstance(value, str) else msgspec.json.encode(value))


def _search(kept: LongText, asked: PartQuery, first: int, last: int, tokens: int) -> ResultPart:
    """Return the lines that have the words, each with its number."""
    rows: list[str] = []
    for number in kept.lines_with(asked.search, first, last):
        row = f"{number}: {as_text(kept.between(number, number)).rstrip()}"
        tokens -= estimate_tokens(row)
        if rows and tokens < 0:
            following = f"search={quote(asked.search, safe=_PLAIN)}&lines={number}-{last}"
            return ResultPart("\n".join(rows), f"{_count(rows)}; go on with {following}")
        rows.append(row)
    if not rows:
        return ResultPart("", f"no line from {first} to {last} has {asked.search!r}")
    return ResultPart("\n".join(rows), f"{_count(rows)}, the end")


def _count(rows: list[str]) -> str:
    return f"{len(rows)} line{'s' if len(rows) > 1 else ''}"


# What the results of several calls of one request have together: a budget of tokens, and a number of bytes.
#
# Each result waits until all others are there, or will not come: then it is known how much each may have. The budget is
# the largest that any of the calls has alone; none has more than its own, and what one does not need goes to the others
# (`actors.kit.fairness.quota`).
#
# All results are held until the last is there, also where no budget is set, and joined as one: so their bytes are
# bounded, too, first come, first served.

MAX_BYTES: Final = 32 * 1024 * 1024
"""Of the results of one request together: two of the largest that a server may send."""


class SharedBudget:
    """The budget of so many calls, by their places."""

    def __init__(self, calls: int) -> None:
        self._awaited = {*range(calls)}
        self._wanted: dict[int, tuple[int, int]] = {}
        self._shares: dict[int, int] = {}
        self._known = trio.Event()
        self._held = 0

    def hold(self, size: int) -> bool:
        """Say whether a result of so many bytes has room beside those before it; then it takes that."""
        if self._held + size > MAX_BYTES:
            return False
        self._held += size
        return True

    async def share(self, place: int, tokens: int, budget: int) -> int:
        """Return how many tokens the result of a call may have, which has so many, and alone so large a budget."""
        self._wanted[place] = tokens, budget
        self.leave(place)
        await self._known.wait()
        return self._shares[place]

    def leave(self, place: int) -> None:
        """A call has no result to be shortened any more, or said how large it is."""
        self._awaited.discard(place)
        if self._awaited or self._known.is_set():
            return
        whole = max((budget for _, budget in self._wanted.values()), default=0)
        parts = divide(whole, [min(tokens, budget) for tokens, budget in self._wanted.values()])
        self._shares = dict(zip(self._wanted, parts, strict=True))
        self._known.set()


class BudgetShare:
    """What one call has of it."""

    def __init__(self, whole: SharedBudget, place: int) -> None:
        self._whole = whole
        self._place = place

    async def take(self, tokens: int, budget: int) -> int:
        """See `SharedBudget.share`. A checkpoint."""
        return await self._whole.share(self._place, tokens, budget)

    def hold(self, size: int) -> bool:
        return self._whole.hold(size)

    def leave(self) -> None:
        self._whole.leave(self._place)


CUT_COST: Final = 8
"""So many bytes of a result cost as much, to be taken apart, as one that a model wrote."""
COUNTED_FROM: Final = 1024
"""Of a smaller result its bytes are taken for its tokens, where several share a budget."""
BESIDE_TOKENS: Final = 5000
"""Of a result for which there is no room beside the others of its request."""
BESIDE_BYTES: Final = 64 * 1024
"""Of what is no text in such a result."""
_READ_COST: Final = 256
_ID_BYTES: Final = 16
_THERE: Final = "this result is kept at another node of the fleet; ask there"


def _told(body: bytes, note: str) -> bytes:
    return with_note(with_text(body, note), note)


class _Kept(msgspec.Struct, frozen=True, eq=False):
    long_text: LongText
    budget: int
    owner: Hashable
    program: ClientKey


class KeptResults:
    """The newest are the last of `_kept`, each with the moment of the trio clock until which it is kept."""

    def __init__(self, deployment: Latest[Deployment], bench: Workbench, life: DaemonLife | None = None) -> None:
        self._life = life or DaemonLife()
        self._deployment = deployment
        self._bench = bench
        self._kept: OrderedDict[str, tuple[float, _Kept]] = OrderedDict()
        self._shared: ClientQuota | None = None

    async def shorten(
        self,
        exchange: Exchange,
        server: str,
        tool: str,
        meta: msgspec.Raw,
        body: bytes,
        *,
        share: BudgetShare | None = None,
    ) -> tuple[bytes, int]:
        """Return a result as it is, or as much of it as a model may get, and how many tokens that spares the model.

        `share`: it is one of several results that have one budget. A checkpoint only if it is large, or has a share.
        """
        budget = self._budget(server, tool, meta)
        made, spared = (body, 0) if budget is None else await self._within(exchange, budget, body, share)
        if share is None or share.hold(len(made)):
            return made, spared
        made, more = await self._beside(exchange, min(BESIDE_TOKENS, budget or BESIDE_TOKENS), made)
        return made, spared + more

    async def _within(
        self, exchange: Exchange, budget: int, body: bytes, share: BudgetShare | None
    ) -> tuple[bytes, int]:
        room = budget
        if share is not None:
            size = len(body)
            if size > COUNTED_FROM:
                size = await self._bench.finish(size // CUT_COST, size_of, body)
            room = await share.take(size, budget)
        if len(body) <= room:  # no token is empty
            return body, 0
        taken = await self._bench.finish(len(body) // CUT_COST, cut, body, room)
        if taken is None or (id_ := self._keep(exchange, taken.long_text, budget)) is None:
            return body, 0
        return taken.result(id_, self._deployment.value.settings.result_kept_s)

    async def _beside(self, exchange: Exchange, budget: int, body: bytes) -> tuple[bytes, int]:
        """Return the beginning of a result for which there is no room beside the others of its request.

        The rest is kept as that of any result. What cannot be kept, or is no text, is left out, and said to be.
        """
        taken = await self._bench.finish(len(body) // CUT_COST, cut, body, budget)
        fits = taken is not None and taken.staying <= BESIDE_BYTES
        if taken is None or not fits or (id_ := self._keep(exchange, taken.long_text, budget)) is None:
            return await self._bench.finish(len(body) // CUT_COST, left_out, body, MAX_BYTES), 0
        return taken.result(id_, self._deployment.value.settings.result_kept_s)

    async def pick(
        self,
        exchange: Exchange,
        server: str,
        tool: str,
        meta: msgspec.Raw,
        body: bytes,
        *,
        wanted: tuple[Path, ...],
        share: BudgetShare | None = None,
    ) -> tuple[bytes, int]:
        """Return of a result what is wanted, within its budget, and how many tokens that spares the model.

        Where results are kept, all of it is, so that what was left out can be read without another call. A checkpoint
        only if it is large.
        """
        cost = len(body) // CUT_COST
        picked = await self._bench.finish(cost * max(1, selectors(wanted)), pick, body, wanted)
        budget, told = self._budget(server, tool, meta), picked.told
        if picked.whole is not None and budget is not None:
            kept = await self._bench.finish(cost, picked.whole.long_text)
            if (id_ := self._keep(exchange, kept, budget)) is not None:
                told += f" All of it: read_mcp_resource, uri: {SCHEME}{id_}"
        made, spared = await self.shorten(exchange, server, tool, meta, picked.body, share=share)
        if told:
            made = await self._bench.finish(len(made) // CUT_COST, _told, made, f"[{told}]")
        return made, picked.tokens + spared

    def _budget(self, server: str, tool: str, meta: msgspec.Raw) -> int | None:
        """Return how many tokens a model gets of a result; None for all of it."""
        rules = self._deployment.value.rules_of(server)
        return rules.result_budget(tool) if rules.result_budgets and not is_whole(meta) else None

    async def read(self, exchange: Exchange, uri: str) -> ResultPart:
        """Return a part of a result. A checkpoint if that is work.

        Raises `InvalidArguments`, `HeldElsewhere`, and for what is not kept `RemoteError`, in the codes of the client's
        era.
        """
        asked = read_address(uri)
        self._forget_old()
        _, kept = self._kept.get(asked.id, (0.0, None))
        if kept is None or kept.owner != exchange.identity:
            self._life.check_here(life_in(asked.id), InvalidArguments(_THERE))
            text = "this result is not kept, or not any more, for this client; if it is needed, call the tool again"
            raise not_found(exchange.client.era, text, uri[:200])
        self._kept[asked.id] = self._until(), kept
        self._kept.move_to_end(asked.id)
        budget = max(1, kept.budget - len(uri) // 2)
        cost = kept.long_text.memory // _READ_COST + budget
        return await self._bench.run(cost, answer, kept.long_text, asked, budget)

    async def run(self) -> None:
        """Forget what nobody reads, for ever."""
        while True:
            await trio.sleep(self._deployment.value.settings.result_kept_s / 4)
            self._forget_old()

    def _until(self) -> float:
        return trio.current_time() + self._deployment.value.settings.result_kept_s

    def _keep(self, exchange: Exchange, long_text: LongText, budget: int) -> str | None:
        """Return the name under which a text is kept, if there is room, made by what its client had before."""
        shared, program = self._quota(), exchange.client.program
        for id_ in [id_ for id_, (_, kept) in self._kept.items() if kept.program == program]:
            if shared.has_room(program, long_text.memory):
                break
            self._forget(id_)
        if not shared.has_room(program, long_text.memory):
            return None
        shared.add(program, long_text.memory)
        id_ = self._life.make_name(_ID_BYTES)
        self._kept[id_] = self._until(), _Kept(long_text, budget, exchange.identity, program)
        return id_

    def _quota(self) -> ClientQuota:
        self._forget_old()
        limit = self._deployment.value.settings.max_kept_result_bytes
        if self._shared is None:
            self._shared = ClientQuota(limit)
        self._shared.limit = limit
        return self._shared

    def _forget_old(self) -> None:
        now = trio.current_time()
        while self._kept and next(iter(self._kept.values()))[0] <= now:
            self._forget(next(iter(self._kept)))

    def _forget(self, id_: str) -> None:
        _, kept = self._kept.pop(id_)
        assert self._shared is not None
        self._shared.remove(kept.program, kept.long_text.memory)
