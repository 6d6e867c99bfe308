"""The definitions behind the phrase book: `python -m benchmarks.said_catalogue OUT.jsonl [--only NAME ...]`.

Installs the packages of those pages of the book for which `said_servers.json` says how they are started, lists the
tools of each server over stdio, and writes those whose definition is the one that the page was made from, as lines of a
catalogue that `benchmarks.search` reads. A page may have a part of a server's tools only; the others are left out.
Needs the package indexes of npm and PyPI, and Node.js. What is installed stays in the cache directory. A server gets
a new home directory, and of the environment only the PATH and what the file says: there is no real key in it. For one
that asks the service behind it before it lists anything, there is an HTTP server that answers. Install scripts of npm
packages are not run.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from actors.catalogue import lists
from actors.catalogue.documents import digest_of
from benchmarks import client as mcp
from benchmarks.machine import ROOT
from benchmarks.peers import cache_python, has, install, of_package
from supervisor.phrases.phrase_book import FOLDER, Page

SERVERS = ROOT / "benchmarks" / "said_servers.json"
ANSWER_S = 90.0
MAX_PAGES = 100
SHOWN_CHARS = 300


class Server(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a server is started. The first word of `command` is a program of its package, or `python`.

    No token or address in `env` is a real one. One package imports files without their ending, so that it does not
    start as it is published: its `NODE_OPTIONS` have a hook that adds it. `python` is the version of its environment:
    from 3.13 on, docstrings lose their indentation, and descriptions are made of them. `beside` are packages that are
    installed with it, where its newest dependencies do not fit any more. `answers` is what it is answered over HTTP, by
    path; `{port}` in `env` is where.
    """

    command: tuple[str, ...]
    env: dict[str, str] = {}
    python: str = "3.12"
    beside: tuple[str, ...] = ()
    answers: dict[str, Any] = {}


class Unlisted(Exception):
    """Why a server did not list its tools."""


def main() -> int:
    """List the servers one after the other; write what fits, print what was found. Return 1 if a tool is missing."""
    servers = read_servers()
    arguments = _parser(servers).parse_args()
    pages = {page.server: page for page in read_pages()}
    lines: list[dict[str, Any]] = []
    wanted = found = 0
    for name in arguments.only or sorted(servers):
        page = pages[name]
        said = ""
        fitting: list[dict[str, Any]] = []
        try:
            fitting = fits(page, listed(page, servers[name], arguments.python))
        except Unlisted as error:
            said = f": {error}"
        lines += fitting
        wanted, found = wanted + len(page.tools), found + len(fitting)
        print(f"{name}: {len(fitting)} of {len(page.tools)}{said}{_missing(page, fitting)}", flush=True)
        arguments.out.write_bytes(msgspec.json.Encoder().encode_lines(lines))
    print(f"{found} of {wanted} tools")
    return int(found < wanted)


def _parser(names: Collection[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.said_catalogue", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT.jsonl", help="where the definitions are written")
    parser.add_argument("--only", nargs="+", choices=sorted(names), metavar="NAME", help="the servers to list")
    parser.add_argument(
        "--python",
        nargs="+",
        default=[],
        metavar="FILE",
        help="Pythons for the servers' environments, where `python3.12` and `python3.13` are not on the PATH",
    )
    return parser


def read_servers() -> dict[str, Server]:
    """Return how the servers are started."""
    return msgspec.json.decode(SERVERS.read_bytes(), type=dict[str, Server])


def read_pages() -> list[Page]:
    """Return the pages of the book."""
    return [msgspec.json.decode(path.read_bytes(), type=Page) for path in sorted(FOLDER.glob("*.json"))]


def fits(page: Page, tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line of the catalogue for each tool of the page, in its order, whose definition is among `tools`."""
    by_digest: dict[str, dict[str, Any]] = {}
    for tool in tools:
        with suppress(lists.Unusable):
            by_digest[digest_of(lists.tool(msgspec.Raw(msgspec.json.encode(tool)))).hex()] = tool
    return [line(page.server, by_digest[known.digest]) for known in page.tools if known.digest in by_digest]


def line(server: str, tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as a catalogue has it."""
    told = {"server": server, "name": tool["name"], "description": tool.get("description", "")}
    title = {"title": tool["title"]} if tool.get("title") else {}
    return {**told, "input_schema": tool["inputSchema"], **title}


def _missing(page: Page, fitting: Sequence[Mapping[str, Any]]) -> str:
    names = {tool["name"] for tool in fitting}
    missing = [known.name for known in page.tools if known.name not in names]
    return f" (not {', '.join(missing)})"[:SHOWN_CHARS] if missing and fitting else ""


def listed(page: Page, server: Server, pythons: Sequence[str]) -> list[dict[str, Any]]:
    """Install a server and return its tools as it lists them. Raises `Unlisted`."""
    program = installed(page, server, pythons)
    if program is None:
        raise Unlisted("not installed")
    with (
        tempfile.TemporaryDirectory(prefix="said-", ignore_cleanup_errors=True) as home,
        answering(server.answers) as port,
    ):
        own = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "HOME": home}
        given = {name: value.replace("{port}", str(port)) for name, value in server.env.items()}
        with (Path(home) / "stderr.log").open("w+b") as errors:
            process = subprocess.Popen(
                [program, *server.command[1:]],
                cwd=home,
                env={**own, **given},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
            timer = threading.Timer(ANSWER_S, _end, (process,))
            timer.start()
            try:
                return _tools(process)
            except (OSError, Unlisted) as error:
                errors.seek(0)
                said = errors.read().decode(errors="replace").strip()
                raise Unlisted(f"{error} {said[-SHOWN_CHARS:]}") from error
            finally:
                timer.cancel()
                _end(process)
                process.communicate()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a server and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def installed(page: Page, server: Server, pythons: Sequence[str]) -> Path | None:
    """Return the program of a server, which is installed now; None if that fails, or there is no such Python."""
    separator = "==" if "==" in page.package else "@"
    version = page.package.rpartition(separator)[2]
    own = cache_python(f"said/{page.server}-{version}")
    if separator == "@":
        root = own.parent.parent
        program = root / "node_modules" / ".bin" / server.command[0]
        return of_package(page.package, root, program, ("--ignore-scripts",))
    program = own.with_name(server.command[0])

    def there() -> bool:
        return has(own, server.command[2]) if program == own else program.exists()

    if not there() and (base := _python(server.python, pythons)) is not None:
        install(own, (page.package, *server.beside), base)
    return program if there() else None


def _python(version: str, pythons: Sequence[str]) -> str | None:
    """Return the first of some Pythons that is of a version; None if none is."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    for python in (*pythons, f"python{version}", sys.executable):
        with suppress(OSError):
            said = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout
            if said.strip() == version:
                return python
    print(f"there is no Python {version}", file=sys.stderr)
    return None


@contextmanager
def answering(answers: Mapping[str, Any]) -> Iterator[int]:
    """Answer GET over HTTP for the block, by path; yield the port."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            body = msgspec.json.encode(answers.get(path))
            self.send_response(200 if path in answers else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield http.server_port
        http.shutdown()


def _tools(process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    _answer(process, mcp.initialize())
    _say(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    tools: list[dict[str, Any]] = []
    cursor: dict[str, Any] = {}
    for number in range(1, MAX_PAGES + 1):
        answer = _answer(process, {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": cursor})
        tools += answer["tools"]
        if not answer.get("nextCursor"):
            break
        cursor = {"cursor": answer["nextCursor"]}
    return tools


def _say(process: subprocess.Popen[bytes], message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(message) + b"\n")
    process.stdin.flush()


def _answer(process: subprocess.Popen[bytes], request: Mapping[str, Any]) -> dict[str, Any]:
    _say(process, request)
    for message in _messages(process):
        if "method" in message and "id" in message:
            error = {"code": -32601, "message": "Method not found"}
            _say(process, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        elif message.get("id") == request["id"]:
            if "result" not in message:
                raise Unlisted(f"{request['method']} was answered with {message}"[:SHOWN_CHARS])
            result: dict[str, Any] = message["result"]
            return result
    raise Unlisted("it ended without an answer.")


def _messages(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    """Yield what the server says; a line that is no message is left out."""
    assert process.stdout is not None
    for text in process.stdout:
        with suppress(msgspec.DecodeError):
            message = msgspec.json.decode(text)
            if isinstance(message, dict):
                yield message


if __name__ == "__main__":
    sys.exit(main())
