"""Calling a tool: find it among what the client may see, check what can be checked, pass the call through as bytes."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import trio
from msgspec.structs import replace

from actors.catalogue.names import tool_path
from actors.catalogue.offer import NO_RAW, Tool
from actors.catalogue.snapshot import Entry
from actors.errors import InvalidArguments
from actors.protocol.asking.input_required import Retry
from actors.protocol.wire.jsonrpc import ErrorObject, RemoteError, encode
from supervisor.host.workbench import SMALL_BYTES, Workbench
from supervisor.metatools import lenient_json
from supervisor.metatools.arguments import ARGUMENT_KEYS
from supervisor.metatools.execution import PICK, Execute
from supervisor.metatools.lean import MODEL_READS_STRUCTURED
from supervisor.metatools.schemas import complete, has_parameter
from supervisor.metatools.slips import (
    changes_something,
    coerce_arguments,
    is_read_only,
    slip_of,
    takes_any,
    takes_no_others,
)
from supervisor.metatools.texts import clean
from supervisor.servers.safety import NotReadOnly
from supervisor.service.asking.exchange import Exchange
from supervisor.service.calls.counting import PendingCall
from supervisor.service.calls.failures import is_for_client
from supervisor.service.fitting.relay import has_failed, with_text
from supervisor.service.forward import Forwarder
from supervisor.service.lookup.lookup import Lookup
from supervisor.service.lookup.visible import ClientView
from supervisor.service.request import ServerRequest
from supervisor.service.results.keeper import BudgetShare, KeptResults
from supervisor.service.results.picks import read_picks, with_note

REMARKED_COST = 64
"""So many bytes of a result cost as much, to be looked at, as one that a model wrote."""
REMARK = "mcpvisor_remark"
"""The member of a structured content that has what is said of the arguments."""
SIZE_CHECKED = 4
"""So much larger than what a model may write in any way are arguments and schema that are checked without a thread."""


class ToolCalls:
    """Calls tools of servers. A result with `isError` is a result."""

    def __init__(
        self, view: ClientView, forward: Forwarder, lookup: Lookup, bench: Workbench, results: KeptResults
    ) -> None:
        self._view = view
        self._results = results
        self._forward = forward
        self._lookup = lookup
        self.bench = bench

    async def call(
        self,
        exchange: Exchange,
        pending: PendingCall,
        wanted: Execute,
        meta: msgspec.Raw,
        *,
        by_result: bool = False,
        share: BudgetShare | None = None,
    ) -> bytes:
        """Call one tool; `by_result`: see `Forwarder.ask`, `share`: see `KeptResults.shorten`.

        Raises `InvalidArguments`, `NotReadOnly`, and what `Lookup` and `Forwarder.ask` raise. A checkpoint.
        """
        since = trio.current_time()
        pending.named = f"{wanted.server}:{wanted.tool_path}" if wanted.server else wanted.tool_path
        pending.arguments = wanted.arguments
        beside = "" if wanted.server_key else wanted.server
        entry, tool = await self._lookup.tool(exchange.client, wanted.tool_path, beside, since)
        if wanted.server_key and not has_parameter(tool, wanted.server_key):  # so it is no argument
            entry, tool = await self._lookup.tool(exchange.client, wanted.tool_path, wanted.server, since)
        wanted = with_own_pick(tool, wanted)
        picks = read_picks(wanted.pick)
        pending.find(entry.server, tool)
        own = (tool.own or tool).name
        if exchange.only_reads and (why := self._view.doubt(exchange.client.principal, entry.server, own)) is not None:
            raise NotReadOnly(entry.server, own, tool_path(entry.server, tool.name), why)
        self._lookup.refuse(entry.server)
        cost = (len(wanted.arguments) + len(tool.input_schema)) // SIZE_CHECKED
        if cost <= SMALL_BYTES:
            approved = check_arguments(entry, tool, wanted)
        else:
            approved = await self.bench.run(cost, check_arguments, entry, tool, wanted)
        pending.arguments = approved.arguments
        members = b'"name":' + encode(own) + b',"arguments":' + bytes(approved.arguments)
        if (continuation := wanted.continuation) is not None and exchange.retry is None:  # else it has a newer state
            exchange.retry = Retry(continuation.answers, msgspec.Raw(encode(continuation.state)), ours=True)
        request = ServerRequest(entry.server, "tools/call", members, meta, name=own, since=since, by_result=by_result)
        try:
            body = await self._forward.ask(exchange, request)
        except RemoteError as error:
            if approved.remark and not is_for_client(error):
                raise _with_remark(error, approved.remark) from None
            raise
        pending.end(body)
        shorten = partial(self._results.pick, wanted=picks) if picks else self._results.shorten
        body, pending.record.tokens_saved = await shorten(exchange, entry.server, own, meta, body, share=share)
        if approved.remark:
            cost = len(body) // REMARKED_COST
            alone = exchange.client.name in MODEL_READS_STRUCTURED
            body = await self.bench.finish(cost, with_remark, body, approved.remark, approved.anyway, alone)
        return body


def with_own_pick(tool: Tool, wanted: Execute) -> Execute:
    """Return a call with `pick` among its arguments, if it stood among such and the tool has one of that name."""
    if not wanted.pick_beside or not has_parameter(tool, PICK):
        return wanted
    given = _with_member(lenient_json.read(wanted.arguments), PICK, wanted.pick)
    return replace(wanted, arguments=given.text, pick=NO_RAW)


class Checked(msgspec.Struct, frozen=True):
    """The arguments to be sent; `remark` is to be said if the call fails, and also of a good result if `anyway`."""

    arguments: msgspec.Raw
    remark: str = ""
    anyway: bool = False


def check_arguments(entry: Entry, tool: Tool, wanted: Execute) -> Checked:
    """Return the arguments for a tool, before a server is woken for them.

    Raises `InvalidArguments` with the tool's schema for arguments that are no object, lack a required one, or have one
    that the schema excludes.
    """
    try:
        given = lenient_json.read(wanted.arguments)
    except lenient_json.NotAnObject:
        raise _wrong(entry, tool, "arguments must be a JSON object") from None
    if wanted.wrapper and has_parameter(tool, wanted.wrapper):
        given = lenient_json.read(msgspec.Raw(b"{" + encode(wanted.wrapper) + b":" + bytes(given.text) + b"}"))
    if wanted.server_key and has_parameter(tool, wanted.server_key):
        given = _with_member(given, wanted.server_key, wanted.server)
    given = coerce_arguments(tool, given, ARGUMENT_KEYS)
    missing = lenient_json.missing_members(given, tool.required)
    if missing:
        slip = slip_of(tool, given, missing)
        if slip.mended is None:
            raise _wrong(entry, tool, slip.sentence, missing=slip.missing, unknown=slip.unknown, meant=slip.meant)
        remark = f"{', '.join(slip.unknown)} was taken for {', '.join(slip.missing)}, as this tool calls it"
        return Checked(slip.mended, remark, anyway=not is_read_only(tool))
    others = slip_of(tool, given)
    if not others.unknown:
        return Checked(given.text)
    if takes_no_others(tool):
        raise _wrong(entry, tool, others.sentence, unknown=others.unknown, meant=others.meant)
    if others.meant:  # most servers pass over what they do not know: the call succeeds, and does something else
        return Checked(given.text, others.sentence, anyway=True)
    no_such = f"{clean(tool_path(entry.server, tool.name))} may have no such argument"
    if changes_something(tool.own or tool) and not takes_any(tool):
        return Checked(given.text, f"{others.sentence}; {no_such}, and it may have been passed over", anyway=True)
    return Checked(given.text, f"{others.sentence}; {no_such}")


def _with_member(given: lenient_json.Object, key: str, value: str | msgspec.Raw) -> lenient_json.Object:
    rest = bytes(given.text).strip()[1:].lstrip()
    comma = b"" if rest == b"}" else b","
    return lenient_json.read(msgspec.Raw(b"{" + encode(key) + b":" + encode(value) + comma + rest))


def with_remark(body: bytes, remark: str, anyway: bool = False, structured: bool = False) -> bytes:
    """Return the result of a call with a text more if it failed, or `anyway`; what is no result, as it is.

    `structured`: its model is shown structured content in place of the text, so the remark stands there, too.
    """
    if not anyway and not has_failed(body):
        return body
    told = with_text(body, remark)
    return with_note(told, remark, REMARK) if structured else told


def _with_remark(error: RemoteError, remark: str) -> RemoteError:
    said = error.error
    return RemoteError(ErrorObject(said.code, f"{said.message}; {remark}", said.data), error.server)


def _wrong(entry: Entry, tool: Tool, what: str, **more: Any) -> InvalidArguments:
    path = clean(tool_path(entry.server, tool.name))
    details = {"tool_path": path, **more, "schema": complete(tool)}
    return InvalidArguments(f"{path}: {what}", server=entry.server, details=details)
