"""What servers write: lines, answers, questions, lists with the schemas of tools."""

from __future__ import annotations

from contextlib import suppress
from itertools import count, pairwise
from typing import Any, get_args

import msgspec

from actors.catalogue.documents import document_of
from actors.catalogue.lists import Draft, ListRoom, Unusable, read_page, tool
from actors.catalogue.metadata import describe
from actors.catalogue.offer import EventType, Tool, decode_offer, encode_offer
from actors.errors import ProtocolViolation, SupervisorError, TruncatedMessage
from actors.messages import CallServer
from actors.protocol import changes, tasks
from actors.protocol.agreement.era import Agreement, Identity, Negotiation
from actors.protocol.asking import forms, input_required, questions
from actors.protocol.asking.questions import Fallback
from actors.protocol.conversation import Conversation
from actors.protocol.facts import CallAsked
from actors.protocol.listing import METHODS, Listed, ListLimits, PageArrived
from actors.protocol.wire import json, jsonrpc
from actors.protocol.wire.fragment import decode_line, read_fragment, request_id
from actors.protocol.wire.framing import Line, LineSplitter, Oversized, Pieces, may_be_message, one_line
from actors.protocol.wire.mirrors import MisplacedMirror, mirrors_in
from actors.protocol.wire.outline import MalformedJson, Outline, extent, weight
from actors.protocol.wire.repeated_keys import check_keys
from actors.search.segment import analyse
from supervisor.metatools.schemas import complete, growth, inline_references, quiet, requirements, signature, slim
from supervisor.service.fitting import tool_definitions
from supervisor.usage.arguments import secret_names
from tests.fuzz.target import carried, holds, same

MAX_LINE = 256
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_ROOM = ListRoom(1000, 1024 * 1024)


def _lines(data: bytes, *cuts: int) -> list[Line | str]:
    """Return what a splitter says of bytes that arrive in parts."""
    splitter = LineSplitter(MAX_LINE, long_bytes=64)
    said: list[Line | str] = []
    places = [0, *cuts, len(data)]
    for start, end in pairwise(places):
        if splitter.endless:
            break
        for line in splitter.feed(data[start:end]):
            whole = line.line() if isinstance(line, Pieces) else line
            said += [] if whole is None else [whole]
    if splitter.endless:
        return [*said, "endless"]
    try:
        return [*said, *splitter.close()]
    except TruncatedMessage:
        return [*said, "half"]


def lines(data: bytes) -> None:
    """Cut a stream into lines: the same ones however it arrives, and none is longer than it may be."""
    said = _lines(data)
    same(_lines(data, *range(1, len(data))) if len(data) < 512 else said, said)
    same(_lines(data, len(data) // 3, len(data) // 2), said)
    for line in said:
        if isinstance(line, str):
            continue
        may_be_message(line)
        read_fragment(line)
        if isinstance(line, Oversized):
            assert line.size > MAX_LINE
            continue
        assert b"\n" not in line
        assert len(line) <= MAX_LINE
        decoded = decode_line(line)
        assert (decoded.envelope is not None) + bool(decoded.members) + bool(decoded.trouble) == 1
    request_id(data)
    assert b"\n" not in one_line(data)


def texts(data: bytes) -> None:
    """Read JSON without reading it: what is found is what a real reader finds, of what is JSON at all."""
    valid = json.is_json(data)
    weighed = weight(data, 1024 * 1024)
    assert weighed >= 0
    json.has_endless_integer(data)
    with suppress(SupervisorError):
        check_keys(data)
    try:
        size = extent(data)
        found = Outline(data, 3, 10_000)
        root = found.root()
        same(found.take(root), data.strip(b" \t\r\n"))
    except MalformedJson:
        assert not valid
        return
    for read in (found.members, found.elements):
        with suppress(MalformedJson):
            read(root)
    if not valid or size.marks > 9_000:
        return
    if data.strip(b" \t\r\n")[:1] == b"[":
        spans, whole = found.elements(root)
        assert whole
        same([found.take(span) for span in spans], [bytes(each) for each in json.read(json.ELEMENTS, data)])
    elif (members := json.members(data)) and data.count(b"\\") == 0:
        with suppress(SupervisorError):
            check_keys(data)
            ours = {name: found.take(span) for name, span in found.members(root).items()}
            for name, value in members.items():
                if len(name.encode()) <= 200:
                    same(ours[name.encode()], bytes(value))


def _answered(id_: bytes, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_, result)


def _conversation(first: bytes) -> tuple[Conversation, list[bytes]]:
    """Return a conversation under way, in the era that an input chooses, and the ids that are awaited."""
    modern = first[:1] == b"m"
    talk = Conversation(
        count(1),
        Negotiation(Identity(), None if modern else "legacy"),
        ListLimits(),
        lambda _: (),
        lambda _: True,
        float,
    )
    capabilities = b'{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"tasks":{"requests":{}}}'
    talk.greet()
    id_ = talk.output[-1].id
    talk.output.clear()
    if modern:
        talk.receive(_answered(id_, b'{"supportedVersions":["2026-07-28"],"capabilities":%b}' % capabilities))
    else:
        talk.receive(_answered(id_, b'{"protocolVersion":"2025-11-25","capabilities":%b}' % capabilities))
    talk.output.clear()
    talk.call(1, CallServer(server="s", method="tools/call", members=b'"name":"a"', meta=b""))
    talk.call(2, CallServer(server="s", method="resources/read", members=b'"uri":"a:b"', meta=b""))
    talk.list_all(0.0)
    talk.listen(["a:b"])
    talk.ask_for_life()
    return talk, [message.id for message in talk.output if message.id]


def conversation(data: bytes) -> None:
    """Take messages, with `ID0` to `ID9` for what is asked: each is a fact, nothing, or a violation that is typed."""
    talk, ids = _conversation(data)
    for line in data.split(b"\n")[1:40]:
        for number, id_ in enumerate(ids[:10]):
            line = line.replace(b'"ID%d"' % number, id_)
        try:
            fact = talk.receive(line)
            if isinstance(fact, PageArrived):
                read_page(fact, _ROOM, Draft(ListLimits(), None).known)
                fact = talk.receive_other(fact.message, fact.kind)
        except ProtocolViolation as error:
            holds(error.message)
            continue
        if isinstance(fact, CallAsked):
            talk.answer(fact.id, b'{"action":"accept"}')
    for message in talk.output:
        assert json.is_json(message.body)


def said(data: bytes) -> None:
    """Read the params of what a server asks and tells, and results that want something: `None`, or a typed error."""
    if (raw := carried(data)) is None:
        return
    data = bytes(raw)
    for method in ("notifications/tools/list_changed", "notifications/resources/updated", "x"):
        changes.read_change(method, raw)
    changes.acknowledgement(raw)
    form = forms.read(raw)
    forms.is_secret(raw)
    content = forms.defaults(raw)
    if form is not None:
        forms.wrong(form, content or {})
        typed: Any = json.read_or(_OBJECT, data, None)
        forms.wrong(form, typed or {})
    input_required.kind_of(raw)
    for read in (input_required.read, jsonrpc.decode_error):
        with suppress(SupervisorError):
            read(raw)
    for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
        questions.refusal(method, raw)
        for fallback in get_args(Fallback):
            answer = questions.timeout_answer(method, raw, fallback)
            assert isinstance(answer, jsonrpc.ErrorObject) or json.is_json(answer)
    token = questions.token_of(raw)
    questions.advance(raw)
    questions.id_of(raw)
    questions.sampled_text(raw)
    if data.strip()[:1] == b"{":
        assert json.is_json(bytes(questions.with_token(raw, token)))
        assert json.is_json(questions.with_progress_token(data, b'"t"'))
        assert json.is_json(tasks.with_related(data, "t"))
        assert json.is_json(tasks.with_id(data, "t"))
    for era in ("legacy", "modern"):
        tasks.read_created(raw, era)
    tasks.read_task(raw)
    tasks.related_task(raw)
    with suppress(SupervisorError, jsonrpc.RemoteError):
        questions.requests_in(jsonrpc.decode_error(raw))


def lists(data: bytes) -> None:
    """Read a page of each list: what is used of it can be saved, described, searched and shown."""
    page = None
    for kind in METHODS:
        draft = Draft(ListLimits(), None)
        page = read_page(PageArrived(kind, data, None), _ROOM, draft.known)
        draft.add(kind, page)
        offer = draft.offer(Agreement(era="legacy", version="2025-11-25"), Listed())
        saved = encode_offer(offer)
        same(encode_offer(decode_offer(saved)), saved)
        found = [item for item in page.entries.values() if not isinstance(item, EventType)]
        analyse("s", [document_of("s", item) for item in found])
        for item in page.entries.values():
            if isinstance(item, Tool):
                _shown(item)


def _shown(item: Tool) -> None:
    describe("s", item)
    assert len(signature(item)) < 10_000
    requirements(item, 10)
    growth(item)
    assert msgspec.json.encode(complete(item))
    for version in ("2024-11-05", "2025-06-18", "2026-07-28"):
        fitted = tool_definitions.fit(item.definition, "tools", version)
        same(bytes(tool_definitions.fit(fitted, "tools", version)), bytes(fitted))


def schemas(data: bytes) -> None:
    """Read a schema of arguments, or of results: it can be shown, and what is shown has a bound."""
    if (raw := carried(data)) is None:
        with suppress(Unusable):
            tool(msgspec.Raw(data))
        return
    data = bytes(raw)
    inlined = msgspec.json.encode(inline_references(raw))
    assert len(inlined) <= 4 * len(data) + 100_000
    secret_names(data)
    tool_definitions.is_of_objects(raw)
    tool_definitions.is_movable(raw)
    changed = tool_definitions.wrap(raw)
    assert changed is None or json.is_json(bytes(changed))
    value = json.read_or(json.VALUE, data, None)
    with suppress(MisplacedMirror):
        mirrors_in(value)
    for shown in (slim(value), quiet(value)):
        assert msgspec.json.encode(shown)
    with suppress(Unusable):
        _shown(tool(msgspec.Raw(b'{"name":"a","inputSchema":%b,"outputSchema":%b}' % (data, data))))


TARGETS = {
    "lines": lines,
    "texts": texts,
    "conversation": conversation,
    "said": said,
    "lists": lists,
    "schemas": schemas,
}
