"""What models write: arguments, paths of tools, queries, addresses of results; and results themselves, cut for them."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from actors.catalogue import names
from actors.catalogue.lists import tool
from actors.catalogue.names import ServerNames, Spellings, nearest, resolve, unwrap
from actors.catalogue.offer import Offer, Resource
from actors.errors import InvalidArguments
from actors.protocol.wire import json
from actors.search.document import KINDS, Document
from actors.search.index import Index
from actors.search.paraphrase import interpret
from actors.search.query import clauses, sentences
from actors.search.search import find
from actors.search.segment import analyse
from supervisor.metatools import texts
from supervisor.metatools.arguments import discover, list_resources, read_resource
from supervisor.metatools.discovery import of_server
from supervisor.metatools.execution import Execute, answers_of, execute
from supervisor.metatools.lenient_json import NotAnObject, read
from supervisor.metatools.slips import coerce_arguments, slip_of
from supervisor.plugins.answers import UnusableAnswer, read_arguments, read_result
from supervisor.plugins.contract import ToolCall, Undecodable, decode_result
from supervisor.service.fitting import relay, results, tool_definitions
from supervisor.service.results import picks
from supervisor.service.results.cutting import SCHEME, LongText, cut, long_text, shape
from supervisor.service.results.keeper import answer, read_address
from supervisor.service.results.picks import pick, read_picks, with_note
from supervisor.usage.arguments import show_arguments
from tests.fuzz.target import carried, holds, parts_of, same, text_of

_TOOL = tool(
    msgspec.Raw(
        b'{"name":"create_issue","inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"labels":{"type":'
        b'"array","items":{"type":"string"}},"count":{"type":"integer"},"deep":{"type":"object"},"on":{"type":"boolean"}},'
        b'"required":["owner","count"],"additionalProperties":false}}'
    )
)
_NAMES = {"git-hub": Spellings(["create_issue", "list:all"]), "a:b": Spellings(["x/y"]), "s": Spellings([])}
_SERVERS = ServerNames({name: name for name in _NAMES})
_OFFERS = {
    "s": Offer(resources=(Resource(uri="a:b"),), templates=(Resource(uri="file:///{name}/x{?q}", template=True),)),
    "t": Offer(templates=(Resource(uri="{+all}", template=True), Resource(uri="a:{b}c{d}", template=True))),
}
_INDEX = Index.empty().rebuild(
    analyse(server, [Document(key=f"{server}:{name}", kind="tool", server=server, name=name, title="", described=text)])
    for server, name, text in (
        ("github", "create_issue", "Create an issue in a repository. Use it to report bugs."),
        ("mail", "sendMail", "Sends an e-mail to somebody; see https://mail.example/docs"),
        ("bilder", "图像_list", "naïve K8s pods 图像 list"),
    )
)
_ASKED = ToolCall(user="", role="member", teams=frozenset(), client="", server="s", tool="t", arguments=b"{}")
_MAX_ANSWER_BYTES = 8_000


def arguments(data: bytes) -> None:
    """Read the arguments of the meta-tools: a request, or a refusal that says what is wrong in few words."""
    if (raw := carried(data)) is None:
        return
    data = bytes(raw)
    for each in (
        lambda: discover(raw, 50),
        lambda: list_resources(raw),
        lambda: read_resource(raw),
        lambda: answers_of(raw),
    ):
        try:
            each()
        except InvalidArguments as error:
            holds(len(error.message) < _MAX_ANSWER_BYTES)
            holds(msgspec.json.encode(error.data()))
    with suppress(InvalidArguments):
        _call(execute(raw))
    assert json.is_json(show_arguments(data, lambda text: text.replace("secret", "***"), _TOOL.input_schema).encode())


def _call(asked: Execute) -> None:
    try:
        given = read(asked.arguments)
    except NotAnObject:
        return
    right = coerce_arguments(_TOOL, given, ("arguments",))
    assert json.is_json(bytes(right.text))
    again = coerce_arguments(_TOOL, right, ("arguments",))
    same(json.read_or(json.VALUE, again.text, None), json.read_or(json.VALUE, right.text, None))
    assert len(slip_of(_TOOL, right, ["owner"]).sentence) < _MAX_ANSWER_BYTES
    path(asked.tool_path)


def path(text: str) -> None:
    """Look up what a path of a tool, or the address of a resource, means."""
    for server in ("", "git-hub"):
        resolve(text, _SERVERS, _NAMES.get, server=server)
    unwrap(text)
    assert len(nearest(text, [("git-hub", "create_issue"), ("s", "list")])) <= 10
    names.resolve_named(text, _SERVERS, _OFFERS)
    names.resolve_bare(text, _OFFERS)
    for offer in _OFFERS.values():
        for template in offer.templates:
            names.fits(template.uri, text)


def paths_of_tools(data: bytes) -> None:
    """Look up a path, and a template of a server with an address."""
    text, template, uri = map(text_of, parts_of(data, 3))
    path(text)
    fits = names.fits(template, uri)
    assert not (fits and "{" not in template) or template == uri


def queries(data: bytes) -> None:
    """Search for a text: an answer in any case, the same one each time, of the documents that there are."""
    text = text_of(data)
    found = find(_INDEX, text, limit=2, kinds=frozenset(KINDS))
    assert len(found.hits) <= 2 <= found.total + 2
    assert all(0.0 <= hit.distance <= 1.0 for hit in found.hits)
    same([hit.document.key for hit in find(_INDEX, text, limit=2).hits], [hit.document.key for hit in found.hits])
    assert len(clauses(text)) <= 6
    sentences(text)
    interpret(text.lower())
    assert of_server(text, ["github", "mail"]) in ("", "github", "mail")
    texts.escape(text)
    shown = texts.clean(text)
    same(texts.clean(shown), shown)
    assert len(texts.shorten(text, 40)) <= 44
    texts.estimate_tokens(text)


def outcomes(data: bytes) -> None:
    """Fit a result to clients of each revision, cut it, and read what was kept; see what a plugin makes of it."""
    body, address = parts_of(data, 2)
    for use in (
        lambda: decode_result(body),
        lambda: read_arguments(body, _ASKED, 1),
        lambda: read_result(body, _ASKED, 1),
    ):
        with suppress(Undecodable, UnusableAnswer):
            use()
    raw = carried(body)
    if raw is None or (body := bytes(raw)).strip()[:1] != b"{":
        return
    for version in ("2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"):
        _fit(body, version)
    _pick(body, text_of(address))
    taken = cut(body, 10)
    if taken is not None:
        shortened = taken.result("i", 60.0)[0]
        assert json.is_json(shortened)
    kept = long_text(body) if taken is None else taken.long_text
    assert b"".join(kept.between(line, line) for line in range(1, kept.lines + 1)) == kept.text
    _read_on(kept, SCHEME + "i" + text_of(address))
    with suppress(json.UnreadableJson):
        assert len(shape(json.read(json.VALUE, body))) <= 400


def _pick(body: bytes, written: str) -> None:
    """Pick what an address names, and what nearly every result has."""
    with suppress(InvalidArguments):
        for wanted in (written, written.rpartition("path=")[2], "$.*", "$.content[*]['type','text'], $[0]"):
            paths_of_it = read_picks(msgspec.Raw(msgspec.json.encode(wanted)))
            if paths_of_it:
                picked = pick(body, paths_of_it)
                holds(len(picked.told) < _MAX_ANSWER_BYTES * 3)
                assert json.is_json(picked.body)
                assert json.is_json(with_note(picked.body, picked.told))


def _fit(body: bytes, version: str) -> None:
    to = results.Shown(method="tools/call", version=version)
    with suppress(json.UnreadableJson):
        fitted = results.fit_result(body, to)
        assert json.is_json(fitted)
        same(results.fit_result(fitted, to), fitted)
    for kind in ("tools", "resources", "templates", "prompts"):
        with suppress(json.UnreadableJson):
            assert json.is_json(tool_definitions.fit_page(body, kind, version))
    assert json.is_json(relay.without(body, "a", "_meta"))
    assert json.is_json(relay.with_member(body, b'"z":1'))
    relay.has_failed(body)
    assert json.is_json(b"{" + relay.travelling_meta(msgspec.Raw(body)) + b"}")


def _read_on(kept: LongText, uri: str) -> None:
    with suppress(InvalidArguments):
        asked = read_address(uri)
        part = answer(kept, asked, 50)
        assert len(part.text) < 100_000
        if asked.path:
            with suppress(picks.BadPath):
                picks.read(asked.path)


TARGETS = {
    "arguments": arguments,
    "paths": paths_of_tools,
    "queries": queries,
    "results": outcomes,
}
