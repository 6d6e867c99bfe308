"""A stdio server of many bad habits, for the process tests: `badly_behaved.py HABIT [ARGUMENT]`. Stdlib only.

A process that is to be missed connects to the Unix socket that ARGUMENT names and says who it is; the test sees the
end of that connection when the last of it is dead.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable

held: list[socket.socket] = []


def alive(name: str) -> None:
    """Tell the test that this process lives, and with which pid."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[2])
    connection.sendall(f"{name} {os.getpid()}\n".encode())
    held.append(connection)


def say(data: bytes) -> None:
    """Write to stdout, all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def message(**members: object) -> bytes:
    """A JSON-RPC line."""
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def echo() -> None:
    """Answer each line with itself, end with the input."""
    while data := os.read(0, 65536):
        say(data)


def for_ever() -> None:
    """Wait for a signal, again and again."""
    while True:
        signal.pause()


def ignore_eof() -> None:
    """Live on after the end of the input; SIGTERM ends it."""
    alive("server")
    for_ever()


def ignore_sigterm() -> None:
    """Only SIGKILL ends it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ignore_eof()


def polite_on_sigterm() -> None:
    """Exit code 7 on SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
    ignore_eof()


def grandchild_holds_stdout() -> None:
    """A child in the same group keeps the pipes open; the server ends with the input."""
    if not os.fork():
        alive("grandchild")
        for_ever()
    echo()


def daemonise() -> None:
    """Fork twice with a session of its own in between; the server itself goes on."""
    if not os.fork():
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork():
            os._exit(0)
        alive("daemon")
        for_ever()
    os.wait()
    alive("server")
    echo()


def own_session_in_a_child() -> None:
    """A child that left the group but not its parent."""
    if not os.fork():
        os.setsid()
        alive("child")
        for_ever()
    echo()


def stop_itself() -> None:
    """SIGSTOP: it neither reads nor reacts to SIGTERM."""
    alive("server")
    os.kill(os.getpid(), signal.SIGSTOP)
    for_ever()


def stop_its_shim() -> None:
    """SIGSTOP to its parent, with a child that left the group."""
    if not os.fork():
        os.setsid()
        alive("daemon")
        for_ever()
    os.kill(os.getppid(), signal.SIGSTOP)
    ignore_eof()


def flood_stderr() -> None:
    """100 MB of stderr, then an answer."""
    block = b"x" * 99 + b"\n"
    block *= 1000
    for _ in range(1000):
        os.write(2, block)
    os.write(2, b"\x1b[31mthe end\n")
    say(message(id=1, result={}))
    echo()


def binary_stderr() -> None:
    """64 KiB of any bytes on stderr, without an end of line, then an answer."""
    os.write(2, bytes(range(256)).replace(b"\n", b"") * 257)
    say(message(id=1, result={}))
    echo()


def forks() -> None:
    """ARGUMENT2 children, each second one in a session of its own that ignores SIGTERM; the server goes on."""
    for number in range(int(sys.argv[3])):
        if not os.fork():
            if number % 2:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            alive("child")
            for_ever()
    echo()


def ledger() -> None:
    """An MCP server that notes the number of each call in the file ARGUMENT before it answers it."""
    while data := sys.stdin.buffer.readline():
        asked = json.loads(data)
        said: dict[str, object] = {}
        if asked["method"] == "initialize":
            version = "2025-11-25"
            said = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "ledger", "version": "1"}}
        elif asked["method"] == "tools/list":
            said = {"tools": [{"name": "note", "inputSchema": {"type": "object"}}]}
        elif asked["method"] == "tools/call":
            arguments = asked["params"]["arguments"]
            file = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(file, b"%d\n" % arguments["n"])
            os.close(file)
            said = {"content": [], "structuredContent": arguments}
        if "id" in asked:
            say(message(id=asked["id"], result=said))


def long_line() -> None:
    """One message of ARGUMENT bytes, more or less."""
    say(message(id=1, result="x" * int(sys.argv[2])))
    echo()


def full_pipe() -> None:
    """Write far more than a pipe holds before looking at the input; exit code 5 at its end."""
    for number in range(20_000):
        say(message(method="notifications/message", params={"number": number}))
    while os.read(0, 65536):
        pass
    os._exit(5)


def answer_at_the_end() -> None:
    """Answer what was asked only when the input ends."""
    while data := os.read(0, 65536):
        asked = data
    say(asked)


def exit_with() -> None:
    """Say why on stderr and exit with the code ARGUMENT."""
    os.write(2, b"fatal: no configuration\n")
    os._exit(int(sys.argv[2]))


def die_of() -> None:
    """Send itself the signal ARGUMENT."""
    os.kill(os.getpid(), int(sys.argv[2]))
    for_ever()


def describe_itself() -> None:
    """Tell what was inherited."""
    umask = os.umask(0)
    with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123 - start-up time
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if line.startswith("Sig"))
    fds = []
    for number in range(256):
        try:
            os.fstat(number)
        except OSError:
            continue
        fds.append(number)
    result = {
        "argv": sys.argv[2:],
        "cwd": os.getcwd(),  # noqa: PTH109 - start-up time
        "environment": dict(os.environ),
        "fds": fds,
        "pid": os.getpid(),
        "pgid": os.getpgid(0),
        "sid": os.getsid(0),
        "umask": umask,
        "blocked": int(status["SigBlk"], 16),
    }
    say(message(id=1, result=result))
    echo()


if __name__ == "__main__":
    habit: Callable[[], None] = globals()[sys.argv[1]]
    habit()
