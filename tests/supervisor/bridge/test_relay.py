"""What becomes of messages between a client and daemons that end and come again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.errors import ShuttingDown
from supervisor.bridge.relay import MAX_WAITING, OtherDaemon, Relay
from supervisor.metatools.definitions import READS

Json = dict[str, Any]
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
GREETED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True},
        "prompts": {"listChanged": True},
    },
    "serverInfo": {"name": "mcpvisor", "version": "1"},
}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
ABOUT = "io.modelcontextprotocol/subscriptionId"


def request(id_: Any, method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


def note(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}


def result(id_: Any, value: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "result": value or {}}


def error(id_: Any, code: int = -32603, message: str = "no", data: Any = None) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message, "data": data}}


class Between:
    """A relay, and what has come out of it on either side."""

    def __init__(self, reads: frozenset[str] = frozenset()) -> None:
        self.relay = Relay("http://here/mcp", wait_s=10.0, reads=reads)
        self.now = 0.0
        self.heard: list[Any] = []

    def client(self, *messages: Any) -> Between:
        """The client says something."""
        for each in messages:
            text = each if isinstance(each, bytes) else json.dumps(each).encode()
            self._hear(self.relay.from_client(text, self.now))
        return self

    def daemon(self, *messages: Any) -> Between:
        """The daemon says something."""
        for each in messages:
            text = each if isinstance(each, bytes) else json.dumps(each).encode()
            self._hear(self.relay.from_daemon(text, self.now))
        return self

    def lose(self, why: str = "it is gone") -> Between:
        self._hear(self.relay.lose(why, self.now))
        return self

    def connect(self) -> Between:
        self.relay.connect()
        return self

    def wait(self, seconds: float) -> Between:
        self.now += seconds
        self._hear(self.relay.expire(self.now))
        return self

    def due(self) -> float | None:
        return self.relay.deadline

    def _hear(self, lines: list[bytes]) -> None:
        self.heard += [json.loads(line) for line in lines]

    def take(self) -> list[Any]:
        """Return what the daemon gets now."""
        taken: list[Any] = []
        while (line := self.relay.take()) is not None:
            taken.append(json.loads(line))
        return taken

    def hear(self) -> list[Any]:
        """Return what the client has heard since."""
        heard, self.heard = self.heard, []
        return heard


def greeted(reads: frozenset[str] = frozenset()) -> Between:
    """A client with a session."""
    between = Between(reads).connect().client(request(0, "initialize", INITIALIZE))
    between.take()
    between.daemon(result(0, GREETED)).client(note("notifications/initialized"))
    between.take()
    between.hear()
    return between


def kinds(heard: list[Any]) -> list[Any]:
    """What each message is: its method, its id, or the code of its error."""
    return [each.get("method") or (each["error"]["code"] if "error" in each else each["id"]) for each in heard]


def test_what_is_said_before_there_is_a_daemon_waits_in_its_order() -> None:
    between = Between().client(request(0, "initialize", INITIALIZE), note("notifications/initialized"))
    between.client(request(1, "tools/list"))
    assert between.take() == []
    assert kinds(between.connect().take()) == ["initialize", "notifications/initialized", "tools/list"]
    assert between.hear() == []


def test_messages_pass_as_they_are() -> None:
    between = greeted()
    odd = b'{ "id" : "\\u0041" ,"jsonrpc":"2.0","method":"tools/call","params":{"n":1.50,"n2":1e3}}'
    between.client(odd)
    assert between.relay.take() == odd
    answer = b'{"jsonrpc":"2.0","id":"A","result":{"x":1.50}}'
    assert between.relay.from_daemon(answer, 0.0) == [answer]
    assert between.lose().hear() == []  # it was answered


def test_a_call_that_was_under_way_may_have_been_carried_out() -> None:
    between = greeted().client(request(1, "tools/call"))
    between.take()
    (answer,) = between.lose("the daemon is gone").hear()
    assert (answer["id"], answer["error"]["code"]) == (1, -31503)
    assert "(the daemon is gone); whether this was carried out is not known" in answer["error"]["message"]
    assert answer["error"]["data"] == {"type": "lost", "outcome": "unknown", "retryable": False}
    assert kinds(between.connect().take()) == ["initialize"]


def test_the_next_daemon_is_told_what_the_one_before_was_and_the_client_that_everything_may_have_changed() -> None:
    between = greeted()
    between.client(request(1, "logging/setLevel", {"level": "error"}))
    for number, uri in enumerate(("memo://one", "memo://two", "memo://none"), 2):
        between.client(request(number, "resources/subscribe", {"uri": uri}))
    between.client(request(9, "resources/unsubscribe", {"uri": "memo://two"}))
    between.take()
    between.daemon(result(1), result(2), result(3), error(4), result(9))
    between.lose().hear()
    assert between.connect().take() == [request(0, "initialize", INITIALIZE)]
    between.daemon(result(0, GREETED))
    assert kinds(between.hear()) == ["notifications/tools/list_changed", "notifications/prompts/list_changed"]
    again = between.take()
    assert kinds(again) == ["notifications/initialized", "logging/setLevel", "resources/subscribe"]
    assert [each.get("params") for each in again[1:]] == [{"level": "error"}, {"uri": "memo://one"}]
    between.daemon(result(again[1]["id"]), error(again[2]["id"]))
    assert between.hear() == [note("notifications/resources/updated", {"uri": "memo://one"})]
    assert kinds(between.client(request(5, "tools/list")).take()) == ["tools/list"]


def test_a_client_that_never_said_that_it_is_initialized_is_told_nothing() -> None:
    between = Between().connect().client(request(0, "initialize", INITIALIZE))
    between.take()
    between.daemon(result(0, GREETED)).lose().hear()
    between.connect().take()
    assert between.daemon(result(0, GREETED)).hear() == []
    assert between.take() == []
    assert kinds(between.client(note("notifications/initialized")).take()) == ["notifications/initialized"]


def test_it_may_say_so_while_there_is_none() -> None:
    between = Between().connect().client(request(0, "initialize", INITIALIZE))
    between.take()
    between.daemon(result(0, GREETED)).lose().client(note("notifications/initialized"))
    between.connect().take()
    between.daemon(result(0, GREETED))
    assert kinds(between.take()) == ["notifications/initialized"]


def test_what_changes_nothing_is_asked_once_more() -> None:
    between = greeted().client(request(1, "tools/list"), request(2, "tools/call"), request(3, "resources/read"))
    between.take()
    assert kinds(between.lose().hear()) == [-31503]
    between.connect().take()
    between.daemon(result(0, GREETED)).hear()
    assert [each["id"] for each in between.take()[1:]] == [1, 3]
    between.daemon(result(1))
    assert kinds(between.hear()) == [1]
    (answer,) = between.lose().hear()
    assert (answer["id"], answer["error"]["data"]["type"]) == (3, "lost")


def test_an_unanswered_handshake_is_made_again() -> None:
    between = Between().connect().client(request(0, "initialize", INITIALIZE))
    between.take()
    assert between.lose().hear() == []
    assert kinds(between.connect().take()) == ["initialize"]
    assert kinds(between.daemon(result(0, GREETED)).hear()) == [0]


def test_requests_wait_for_a_daemon_until_their_deadline() -> None:
    between = greeted().lose("it fell").client(request(1, "tools/call"))
    assert between.due() == 10.0
    between.wait(4).client(request(2, "tools/list"), note("notifications/roots/list_changed"))
    assert between.wait(5.9).hear() == []
    (answer,) = between.wait(0.1).hear()
    assert answer["id"] == 1
    assert answer["error"]["message"] == "no daemon answers at http://here/mcp: it fell"
    assert answer["error"]["data"] == {"type": "unavailable", "outcome": "not_sent", "retryable": True}
    assert between.due() == 14.0
    between.connect()
    between.take()
    between.daemon(result(0, GREETED)).hear()
    assert between.due() is None
    assert between.wait(100).hear() == []
    assert kinds(between.take()) == ["notifications/initialized", "tools/list"]


def test_nobody_waits_in_vain_for_what_somebody_has_to_mend() -> None:
    between = Between().client(request(1, "server/discover"))
    between.heard += [json.loads(line) for line in between.relay.refuse("there is no configuration")]
    (answer,) = between.hear()
    assert answer["error"]["message"].endswith("there is no configuration")


def test_so_many_requests_wait_and_no_more() -> None:
    between = Between().client(*(request(number, "tools/call") for number in range(MAX_WAITING)))
    assert between.hear() == []
    (answer,) = between.client(request("more", "tools/call")).hear()
    assert (answer["id"], answer["error"]["code"]) == ("more", -31429)
    assert len(between.connect().take()) == MAX_WAITING


def test_a_large_one_waits_alone() -> None:
    between = Between().client(request(1, "tools/call", {"x": "x" * (16 * 1024 * 1024)}))
    assert kinds(between.client(request(2, "tools/call")).hear()) == [-31429]


def test_a_ping_is_answered_while_there_is_no_daemon() -> None:
    between = greeted().lose().client(request(1, "ping"))
    assert between.hear() == [result(1)]
    between.connect().take()
    between.daemon(result(0, GREETED)).client(request(2, "ping"))
    assert kinds(between.take())[-1] == "ping"


@pytest.mark.parametrize("method", ["tools/call", "tools/list", "subscriptions/listen"])
def test_what_is_cancelled_while_it_waits_is_never_sent(method: str) -> None:
    between = Between().client(request(1, method), note("notifications/cancelled", {"requestId": 1}))
    assert between.connect().take() == []
    assert between.lose().wait(100).hear() == []


def test_what_is_cancelled_is_nobodys_any_more() -> None:
    between = greeted().client(request(1, "tools/call"))
    between.take()
    assert kinds(between.client(note("notifications/cancelled", {"requestId": 1})).take()) == [
        "notifications/cancelled"
    ]
    assert between.lose().hear() == []


def test_a_cancellation_without_an_id_passes() -> None:
    assert kinds(greeted().client(note("notifications/cancelled")).take()) == ["notifications/cancelled"]


def test_questions_end_with_their_connection() -> None:
    between = greeted()
    for id_ in ("q-1", "q-2", "q-3", 4):
        between.daemon(request(id_, "elicitation/create"))
    between.daemon(note("notifications/cancelled", {"requestId": "q-2"})).client(result("q-3"))
    assert kinds(between.hear())[:4] == ["elicitation/create"] * 4
    between.daemon(note("notifications/cancelled"))
    assert kinds(between.hear()) == ["notifications/cancelled"]
    assert [each["id"] for each in between.take()] == ["q-3"]
    heard = between.lose().hear()
    assert {each["params"]["requestId"] for each in heard} == {"q-1", 4}
    assert kinds(heard) == ["notifications/cancelled"] * 2
    between.client(result("q-1"))
    assert between.lose().hear() == []
    between.connect().take()
    between.daemon(result(0, GREETED))
    assert kinds(between.take()) == ["notifications/initialized"]  # the late answer is nobody's


def test_a_question_without_a_proper_id_passes() -> None:
    between = greeted().daemon(request(None, "elicitation/create"))
    assert kinds(between.hear()) == ["elicitation/create"]
    assert between.lose().hear() == []


def listening() -> Between:
    """A modern client that listens for tools and one resource."""
    asked = {"_meta": META, "notifications": {"toolsListChanged": True, "resourceSubscriptions": ["memo://one"]}}
    between = Between().connect().client(request("l", "subscriptions/listen", asked))
    assert kinds(between.take()) == ["subscriptions/listen"]
    return between


def acknowledged(id_: Any = "l", **more: Any) -> Json:
    honoured = {"toolsListChanged": True, "resourceSubscriptions": ["memo://one"], **more}
    return note("notifications/subscriptions/acknowledged", {"_meta": {ABOUT: id_}, "notifications": honoured})


def test_a_listen_is_opened_again_and_its_client_told_what_may_have_changed() -> None:
    between = listening().daemon(acknowledged())
    assert between.hear() == [acknowledged()]
    assert between.lose().hear() == []
    assert kinds(between.connect().take()) == ["subscriptions/listen"]
    assert between.daemon(acknowledged()).hear() == [
        note("notifications/tools/list_changed", {"_meta": {ABOUT: "l"}}),
        note("notifications/resources/updated", {"_meta": {ABOUT: "l"}, "uri": "memo://one"}),
    ]


def test_a_daemon_that_ends_ends_its_listens_and_the_client_does_not_hear_of_it() -> None:
    between = listening().daemon(acknowledged())
    between.hear()
    between.daemon(result("l", {"resultType": "complete"}), note("notifications/cancelled", {"requestId": "l"}))
    assert between.hear() == []
    assert between.lose().hear() == []
    assert kinds(between.connect().take()) == ["subscriptions/listen"]


def test_a_listen_that_is_refused_is_over() -> None:
    between = listening().daemon(error("l"))
    assert kinds(between.hear()) == [-32603]
    assert between.lose().connect().take() == []


def test_a_listen_that_is_told_of_nothing_is_over() -> None:
    nothing = {"toolsListChanged": False, "resourceSubscriptions": []}
    between = listening().daemon(acknowledged(**nothing), result("l"))
    assert kinds(between.hear()) == ["notifications/subscriptions/acknowledged", "l"]
    assert between.lose().connect().take() == []


def test_a_listen_that_is_cancelled_is_over() -> None:
    between = listening().daemon(acknowledged()).client(note("notifications/cancelled", {"requestId": "l"}))
    assert kinds(between.take()) == ["notifications/cancelled"]
    assert between.lose().connect().take() == []


def test_a_listen_that_nobody_acknowledged_is_a_request_like_others() -> None:
    between = listening().lose()
    assert between.due() == 10.0
    assert kinds(between.connect().take()) == ["subscriptions/listen"]
    assert kinds(between.lose().hear()) == [-31503]


@pytest.mark.parametrize("id_", [None, "other", {}])
def test_an_acknowledgement_of_something_else_passes(id_: Any) -> None:
    between = listening().daemon(acknowledged(id_))
    assert kinds(between.hear()) == ["notifications/subscriptions/acknowledged"]


def streaming() -> Between:
    """A modern client that follows events, of whom one has come."""
    asked = {"_meta": META, "name": "tick", "arguments": {}, "cursor": "3"}
    between = Between().connect().client(request("s", "events/stream", asked))
    assert kinds(between.take()) == ["events/stream"]
    between.daemon(told("active", cursor="95", truncated=True), told("event", eventId="evt_95", cursor="96"))
    assert kinds(between.hear()) == ["notifications/events/active", "notifications/events/event"]
    return between


def told(what: str, **said: Any) -> Json:
    return note(f"notifications/events/{what}", {**said, "_meta": {ABOUT: "s"}})


def ended() -> Json:
    """What a daemon that ends answers to a stream, at the door of one server."""
    return ending("s", "unknown")


def closed() -> Json:
    """The same at the doors of many."""
    return result("s", {"resultType": "complete", "_meta": {ABOUT: "s", "mcpvisor/shutdown": True}})


@pytest.mark.parametrize("end", [(), (ended,), (closed,)])
def test_a_stream_of_events_goes_on_at_the_next_daemon_where_its_client_was(end: Any) -> None:
    between = streaming().daemon(told("heartbeat", cursor="97"), told("error", error={"code": -32603, "message": "no"}))
    between.hear()
    assert between.daemon(*(each() for each in end)).lose().hear() == []
    (again,) = between.connect().take()
    params = {"_meta": META, "name": "tick", "arguments": {}, "cursor": "97"}
    assert again == request("s", "events/stream", params)
    # It is as it was: nothing is told of it, but a gap.
    assert between.daemon(told("active", cursor="97", truncated=False)).hear() == []
    event = told("event", eventId="evt_97", cursor="98")
    assert between.daemon(event).hear() == [event]
    gap = told("active", cursor="200", truncated=True)
    between.lose().connect().take()
    assert between.daemon(gap).hear() == [gap]


def test_a_stream_without_cursors_is_opened_as_it_was() -> None:
    asked = request("s", "events/stream", {"_meta": META, "name": "tick"})
    between = Between().connect().client(asked)
    between.take()
    between.daemon(told("active", cursor=None, truncated=False)).lose()
    assert between.connect().take() == [asked]


@pytest.mark.parametrize("answer", [result("s", {"resultType": "complete"}), error("s", -32023)])
def test_a_stream_that_its_server_ends_is_over(answer: Json) -> None:
    between = streaming().daemon(answer)
    assert between.hear() == [answer]
    assert between.lose().connect().take() == []


def test_a_stream_that_is_cancelled_is_over() -> None:
    between = streaming().client(note("notifications/cancelled", {"requestId": "s"}))
    assert kinds(between.take()) == ["notifications/cancelled"]
    assert between.lose().connect().take() == []


@pytest.mark.parametrize("end", [(), (ended,)])
def test_a_stream_that_nobody_confirmed_is_a_request_like_others(end: Any) -> None:
    between = Between().connect().client(request("s", "events/stream", {"_meta": META, "name": "tick"}))
    between.take()
    assert between.daemon(*(each() for each in end)).lose().hear() == []
    assert between.due() == 10.0
    assert kinds(between.connect().take()) == ["events/stream"]
    assert kinds(between.lose().hear()) == [-31503]


@pytest.mark.parametrize("method", ["events/list", "events/poll"])
def test_events_are_asked_for_once_more(method: str) -> None:
    between = Between().connect().client(request("p", method, {"_meta": META}))
    between.take()
    assert between.lose().hear() == []
    assert kinds(between.connect().take()) == [method]


def ending(id_: Any, outcome: str) -> Json:
    error_ = ShuttingDown(outcome="not_sent" if outcome == "not_sent" else "unknown")
    return error(id_, error_.code, error_.message, error_.data())


def test_what_a_daemon_that_ends_has_not_done_is_sent_to_the_next_one() -> None:
    between = greeted().client(request(1, "tools/call"), request(2, "tools/call"))
    between.take()
    between.daemon(request("q", "elicitation/create")).hear()
    assert between.daemon(ending(2, "not_sent")).hear() == []
    between.client(request(3, "tools/call"), result("q"))
    assert [each["id"] for each in between.take()] == ["q"]  # the call before it may still be waiting for that
    assert kinds(between.daemon(result(1)).hear()) == [1]
    between.lose().connect().take()
    between.daemon(result(0, GREETED)).hear()
    assert [each.get("id") for each in between.take()] == [None, 2, 3]


@pytest.mark.parametrize(
    "answer", [ending(1, "unknown"), error(1, -31503), error(1, -31503, data={"type": "unavailable"}), error(1)]
)
def test_other_errors_are_the_clients(answer: Json) -> None:
    between = greeted().client(request(1, "tools/call"))
    between.take()
    assert between.daemon(answer).hear() == [answer]


def test_a_call_of_any_size_that_the_daemon_had_not_begun_is_sent_to_the_next_one() -> None:
    large = request(1, "tools/call", {"arguments": "x" * 1_000_000})
    between = greeted().client(large)
    assert between.take() == [large]
    assert between.daemon(ending(1, "not_sent")).lose().hear() == []
    between.connect().take()
    assert large in between.daemon(result(0, GREETED)).take()


def test_calls_that_are_kept_have_a_bound_together_which_those_that_ended_do_not_use() -> None:
    between = greeted()
    for number in range(1, 60):
        between.client(request(number, "tools/call", {"arguments": "x" * 1_000_000})).take()
        if number < 30:
            between.daemon(result(number))
    between.hear()
    refused = [number for number in range(30, 60) if between.daemon(ending(number, "not_sent")).hear()]
    assert refused == [*range(46, 60)]


@pytest.mark.parametrize("name", ["discover_mcp_tools", "list_mcp_resources", "read_mcp_resource"])
def test_a_search_that_is_under_way_when_the_daemon_dies_is_made_again_at_the_next_one(name: str) -> None:
    between = greeted(READS).client(request(1, "tools/call", {"name": name, "arguments": {}}))
    between.take()
    assert between.lose().hear() == []
    between.connect().take()
    assert [each.get("params", {}).get("name") for each in between.daemon(result(0, GREETED)).take()][-1] == name
    assert kinds(between.lose().hear())[-1] == -31503, "once"


def test_a_tool_of_a_server_that_is_called_like_a_search_is_not_made_again() -> None:
    for between, name in ((greeted(), "discover_mcp_tools"), (greeted(READS), "execute_mcp_tool")):
        between.client(request(1, "tools/call", {"name": name})).take()
        (lost,) = between.lose().hear()
        assert lost["error"]["data"]["outcome"] == "unknown"


def test_a_daemon_of_another_revision_does_not_take_the_place_of_the_one_before() -> None:
    between = greeted().lose()
    between.connect().take()
    with pytest.raises(OtherDaemon, match="it speaks revision 2024-11-05, not 2025-11-25: start the client again"):
        between.daemon(result(0, {"protocolVersion": "2024-11-05"}))
    with pytest.raises(OtherDaemon, match="it refuses this client: no"):
        between.daemon(error(0))


def test_an_array_passes_and_each_of_its_requests_is_answered_once() -> None:
    batch = [request(1, "tools/list"), request(2, "tools/call"), note("notifications/progress"), result("q")]
    between = greeted().client(batch)
    assert between.take() == [batch]
    assert between.daemon([result(1), result(2)]).hear() == [[result(1), result(2)]]
    assert between.lose().client(batch).hear() == []
    ((first, second),) = between.wait(10).hear()
    assert (first["id"], second["id"], first["error"]["code"]) == (1, 2, -31503)
    between.connect().take()
    between.daemon(result(0, GREETED)).client(batch).hear()
    between.take()
    assert [each["id"] for each in between.lose().hear()] == [1, 2]


@pytest.mark.parametrize("text", [b"[]", b"[7]", b"7", b"{}", b'{"id":1}', b'"x"', b"[{]"])
def test_whatever_else_a_daemon_says_passes(text: bytes) -> None:
    assert greeted().relay.from_daemon(text, 0.0) == [text]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600),
    ],
)
def test_what_is_no_message_is_refused_here(text: bytes, code: int) -> None:
    between = greeted().client(text)
    assert kinds(between.hear()) == [code]
    assert between.take() == []


def test_whether_parameters_are_right_is_the_daemons_to_say() -> None:
    newer = {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}
    between = greeted().client(request(1, "tools/list", newer), note("notifications/progress", newer))
    assert kinds(between.take()) == ["tools/list", "notifications/progress"]
    assert kinds(between.lose().hear()) == [-31503]
