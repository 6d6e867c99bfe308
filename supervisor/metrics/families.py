"""The families of metrics that `/metrics` has: names, labels and their values. The reference page is made of them.
Pure.

Names follow the rules of Prometheus: base units, the unit behind the name, `_total` for what only grows. Those without
our prefix are metrics of OpenTelemetry's conventions for MCP and HTTP, with underscores in their names.

Values of labels that clients and servers have a say in are cut down to those that we know, so that there is a bound to
how many there are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

import msgspec

from actors import codes
from actors.errors import SupervisorError
from actors.protocol.agreement.versions import LEGACY_VERSIONS, MODERN_VERSIONS
from actors.protocol.listing import METHODS
from actors.protocol.wire.jsonrpc import RemoteError
from supervisor.metatools import definitions

Kind = Literal["counter", "gauge", "histogram"]
OTHER: Final = "_other"
"""The value of a label for everything that has no room for its own."""
PREFIX: Final = "mcpvisor_"
_UNITS: Final = ("seconds", "bytes")


class Family(msgspec.Struct, frozen=True):
    """One metric. `name` is as it is written, `buckets` are upper bounds in seconds."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()

    @property
    def unit(self) -> str:
        """The base unit that the name ends with; empty for what is counted."""
        last = self.name.removesuffix("_total").rpartition("_")[2]
        return last if last in _UNITS else ""


_OPERATION_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Those that the conventions for MCP ask for."""
_SEARCH_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_REQUEST_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)
SERVER: Final = "mcp_server"


def _own(name: str, kind: Kind, labels: tuple[str, ...], text: str, buckets: tuple[float, ...] = ()) -> Family:
    return Family(PREFIX + name, kind, labels, text, buckets)


# The daemon
BUILD_INFO: Final = _own("build_info", "gauge", ("version", "python"), "Always 1, with the versions as labels.")
LOOP_LAG: Final = _own("event_loop_lag_seconds", "gauge", (), "By how much the loop was late at the newest look.")
LOOP_STALLS: Final = _own("event_loop_stalls_total", "counter", (), "Turns of the loop that took over 100 ms.")
LONGEST_STALL: Final = _own(
    "event_loop_longest_stall_seconds", "gauge", (), "The longest turn of the loop over 100 ms."
)
STANDSTILLS: Final = _own(
    "standstills_total", "counter", (), "How often nothing went on for over a second: the process was stopped."
)
TASKS: Final = _own("tasks", "gauge", (), "Tasks of the loop: of servers, of connections, of requests, and its own.")
PART_RESTARTS: Final = _own(
    "part_restarts_total", "counter", ("part",), "Starts of parts of the daemon after they crashed, which is a bug."
)
LOG_RECORDS_DROPPED: Final = _own("log_records_dropped_total", "counter", (), "Records that the log had no room for.")
SPANS_DROPPED: Final = _own("spans_dropped_total", "counter", (), "Spans that did not reach their collector.")
FLEET_MEMBER: Final = _own("fleet_member", "gauge", ("node",), "1 while this node is a member of its fleet, else 0.")
FLEET_NODES: Final = _own("fleet_nodes", "gauge", ("node",), "Members of the fleet, as this node knows them.")
FLEET_OWNED: Final = _own(
    "fleet_owned_servers", "gauge", ("node",), "Servers that this node of a fleet runs, or would."
)
SCRAPE_DURATION: Final = _own(
    "scrape_gather_seconds", "gauge", (), "How long it took to gather the figures of this page, before it was written."
)
# The process of the daemon, as prometheus-client reads it
CPU: Final = Family("process_cpu_seconds_total", "counter", (), "Total user and system CPU time spent in seconds.")
MEMORY: Final = Family("process_resident_memory_bytes", "gauge", (), "Resident memory size in bytes.")
PROCESS: Final = (
    CPU,
    MEMORY,
    Family("process_virtual_memory_bytes", "gauge", (), "Virtual memory size in bytes."),
    Family("process_open_fds", "gauge", (), "Number of open file descriptors."),
    Family("process_max_fds", "gauge", (), "Maximum number of open file descriptors."),
    Family("process_start_time_seconds", "gauge", (), "Start time of the process since unix epoch in seconds."),
)
# Servers
SERVERS: Final = _own("servers", "gauge", ("state",), "Servers, and launches of people, by what their processes do.")
STATUSES: Final = _own(
    "server_statuses", "gauge", ("status",), "Servers, and launches of people, by what their users may expect."
)
USABLE: Final = _own("server_usable", "gauge", (SERVER,), "1 if it is online: its tools are found, and a call runs.")
RESTARTS: Final = _own("server_restarts_total", "counter", (SERVER,), "Starts after a failure.")
EXITS: Final = _own("server_exits_total", "counter", (SERVER, "reason"), "Ends of processes and connections, by why.")
INQUIRIES: Final = _own(
    "server_inquiries_total",
    "counter",
    (SERVER, "verdict"),
    "Questions of the daemon for a sign of life, by what was found: alive, frozen, deaf, away, unknown.",
)
STARTS: Final = _own(
    "server_start_duration_seconds",
    "histogram",
    ("result",),
    "Starts of servers, until they were ready or had failed.",
    _OPERATION_BUCKETS,
)
WARM_UPS: Final = _own(
    "warm_ups_total",
    "counter",
    ("outcome",),
    "Servers that a search had started ahead, by whether the next call of its client within a minute went there.",
)
WARM_UP_SAVED: Final = _own(
    "warm_up_saved_seconds_total", "counter", (), "What calls did not wait, because their server was started ahead."
)
BREAKERS: Final = _own("breakers_open", "gauge", (SERVER, "breaker"), "Open breakers of a server and its tools.")
LEFT_ALONE: Final = _own(
    "breaker_refusals_total", "counter", (SERVER, "breaker"), "Calls and orders that an open breaker refused."
)
SERVER_MEMORY: Final = _own(
    "server_resident_memory_bytes", "gauge", (SERVER,), "Memory of the processes of a local server that runs."
)
INSTANCES: Final = _own(
    "server_instances", "gauge", (SERVER, "up"), "Instances of a server that can have several, by whether they are up."
)
# Calls
IN_FLIGHT: Final = _own("calls_in_flight", "gauge", (SERVER,), "Calls at a server that it has not answered.")
WAITING: Final = _own("calls_waiting", "gauge", (SERVER,), "Calls that wait for a server, or for their turn there.")
CALLS: Final = _own("calls_total", "counter", (SERVER, "outcome"), "Calls of tools, by how they ended.")
WAITS: Final = _own(
    "call_wait_seconds",
    "histogram",
    ("cause",),
    "How long requests waited to be sent: for their turn, or for a server that was not up.",
    _OPERATION_BUCKETS,
)
TOOL_CALLS: Final = _own(
    "tool_calls_total",
    "counter",
    (SERVER, "tool", "outcome"),
    'Calls of each tool, only with the setting "metrics_tools".',
)
CLIENT_OPERATIONS: Final = Family(
    "mcp_client_operation_duration_seconds",
    "histogram",
    (SERVER, "mcp_method_name", "error_type", "network_transport"),
    "Requests to servers, from when they were sent to the answer.",
    _OPERATION_BUCKETS,
)
SERVER_OPERATIONS: Final = Family(
    "mcp_server_operation_duration_seconds",
    "histogram",
    ("mcp_method_name", "error_type", "network_transport", "mcp_protocol_version", "gen_ai_tool_name"),
    "Requests of clients, from their arrival to the answer.",
    _OPERATION_BUCKETS,
)
# The catalogue and the search
ENTRIES: Final = _own("catalogue_entries", "gauge", ("kind",), "What is known of all servers, by kind.")
TOKENS: Final = _own("catalogue_tokens", "gauge", ("surface",), "Tokens of definitions: of all tools, and of ours.")
CHANGES: Final = _own("catalogue_changes_total", "counter", ("change",), "Tools that came, went, or were changed.")
DISCOVERIES: Final = _own("discoveries_total", "counter", ("result",), "Readings of the lists of servers.")
DISCOVERY_TIMES: Final = _own(
    "discovery_duration_seconds",
    "histogram",
    ("result",),
    "How long readings of the lists took.",
    _OPERATION_BUCKETS,
)
SEARCHES: Final = _own("searches_total", "counter", ("result",), "Searches for tools, by whether something fitted.")
SEARCH_TIMES: Final = _own(
    "search_duration_seconds", "histogram", ("result",), "How long searches took.", _SEARCH_BUCKETS
)
# Clients
SESSIONS: Final = _own("client_sessions", "gauge", ("transport",), "Sessions of clients over HTTP, and WebSockets.")
CONNECTIONS: Final = _own("client_connections", "gauge", (), "Open connections of clients.")
REFUSED: Final = _own("requests_refused_total", "counter", ("reason",), "Requests that were refused at the edge.")
QUESTIONS: Final = _own("questions_open", "gauge", (), "Questions of servers that wait for a person on a page.")
ANSWERS: Final = _own("questions_total", "counter", ("kind", "action"), "Questions of servers, by how they ended.")
HTTP: Final = Family(
    "http_server_request_duration_seconds",
    "histogram",
    ("http_request_method", "http_route", "http_response_status_code"),
    "Requests by HTTP that have an answer of their own; streams and WebSockets are not among them.",
    _REQUEST_BUCKETS,
)

FAMILIES: Final[dict[str, tuple[Family, ...]]] = {
    "The daemon": (
        *(BUILD_INFO, LOOP_LAG, LOOP_STALLS, LONGEST_STALL, STANDSTILLS, TASKS, PART_RESTARTS),
        *(LOG_RECORDS_DROPPED, SPANS_DROPPED, FLEET_MEMBER, FLEET_NODES, FLEET_OWNED, SCRAPE_DURATION),
        *PROCESS,
    ),
    "Servers": (
        *(SERVERS, STATUSES, USABLE, RESTARTS, EXITS, INQUIRIES, STARTS, BREAKERS, LEFT_ALONE),
        *(WARM_UPS, WARM_UP_SAVED, SERVER_MEMORY, INSTANCES),
    ),
    "Calls": (IN_FLIGHT, WAITING, CALLS, WAITS, TOOL_CALLS, CLIENT_OPERATIONS, SERVER_OPERATIONS),
    "Catalogue and search": (*(ENTRIES, TOKENS, CHANGES, DISCOVERIES, DISCOVERY_TIMES, SEARCHES, SEARCH_TIMES),),
    "Clients": (SESSIONS, CONNECTIONS, REFUSED, QUESTIONS, ANSWERS, HTTP),
}
"""All of them, by subject."""


UNNAMED: Final = "_OTHER"
"""What OpenTelemetry calls an error that has no name of its own."""
TOOL_ERROR: Final = "tool_error"
"""A result that says that the tool failed."""
_KNOWN_METHODS: Final = frozenset(
    {*codes.NAMED_BY, *METHODS.values(), *codes.REMOVED, *codes.ADDED, "completion/complete", "tasks/result"}
)
_KNOWN_VERSIONS: Final = frozenset({*LEGACY_VERSIONS, *MODERN_VERSIONS})
_CODES: Final = frozenset(str(value) for value in vars(codes).values() if isinstance(value, int))
CANCELLED: Final = "cancelled"
_KNOWN: Final = 256
"""So many words are remembered: every call has the same ones, and looking them up costs nothing then."""


@lru_cache(maxsize=_KNOWN)
def method_label(method: str) -> str:
    return method if method in _KNOWN_METHODS else OTHER


@lru_cache(maxsize=_KNOWN)
def version_label(version: str) -> str:
    return version if version in _KNOWN_VERSIONS else OTHER


@lru_cache(maxsize=_KNOWN)
def tool_label(tool: str) -> str:
    """Return a meta-tool, or that it was another one; empty for what is no call of a tool."""
    return tool if not tool or tool in definitions.NAMES else OTHER


@lru_cache(maxsize=_KNOWN)
def request_labels(method: str, error: str, version: str, tool: str) -> tuple[str, str, str, str, str]:
    """Return the labels of a request of a client, which is about a `tool` or empty."""
    return method_label(method), error, "tcp", version_label(version), tool_label(tool)


def error_label(error: BaseException | None) -> str:
    """Return what kind of error it is: the code of a server's error, our own word, empty for none."""
    match error:
        case None:
            return ""
        case RemoteError():
            return code_label(error.error.code)
        case SupervisorError():
            return error.kind
        case Exception():
            return UNNAMED
    return CANCELLED


def code_label(code: int) -> str:
    return str(code) if str(code) in _CODES else UNNAMED
