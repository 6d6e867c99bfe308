"""Why a program ended, of what it wrote: outputs of the shape of those of published programs, in our own words."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.transport.side_output import Tail
from actors.transport.stdio.causes import MAX_WORDS_CHARS, Kind, cause_of
from actors.transport.stdio.installer import Installer

UVX = Installer("uvx")
USE_MCP_1 = 'it was written for version 1 of the package mcp: put "--with", "mcp<2" first into its args'
OLD_NODE = "its Node.js may be too old"

NO_NETWORK = """\
error: Failed to fetch: https://index.example/simple/a-server/
  cause: error sending request for url (https://index.example/simple/a-server/)
  cause: client error (Connect)
  cause: invalid peer certificate: UnknownIssuer

hint: use the certificates of the system
"""
NOT_FOUND = """\
npm error code E404
npm error 404 Not Found - GET https://registry.example/a-server
npm error 404
npm error 404  The package 'a-server@*' could not be found.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm notice New minor version of npm available!
npm error A complete log of this run can be found in: /home/me/.npm/_logs/x.log
"""
NO_COMPILER = """\
npm error code 1
npm error path /home/me/node_modules/b
npm error command failed
npm error gyp ERR! stack Error: not found: make
npm error gyp ERR! cwd /home/me
npm error gyp ERR! not ok
"""
USAGE = """\
Usage: a-server [OPTIONS]

Error: In-memory databases need --read-write.
Options:
  - Give a file instead
"""
OPTIONS = "".join(f"  --option-{number} <value>   Sets what is required of part {number}\n" for number in range(90))
ABOVE_A_PAGE_OF_USAGE = f"""\
Error: no token was given.
Run `a-server login` first, or pass --token.
Usage: a-server [options]
       a-server login

Commands:
  login       Log in, which is required once
Options:
{OPTIONS}
Examples:
  a-server --token x   Start with a token that must be valid
"""
UNDER_A_PAGE_OF_OPTIONS = f"a-server\n\nOptions:\n{OPTIONS}\nMissing required argument: region\n"
ARGPARSE = """\
usage: a-server [-h] --db DB
                [--verbose]
a-server: error: the following arguments are required: --db
"""
CLAP = """\
error: the following required arguments were not provided:
  --api-key <API_KEY>

Usage: a-server --api-key <API_KEY>
"""
OTHER_ENGINE = """\
npm warn EBADENGINE Unsupported engine {
npm warn EBADENGINE   package: 'a-part@3.0.0',
npm warn EBADENGINE   required: { node: '>=22' },
npm warn EBADENGINE   current: { node: 'v20.20.2', npm: '10.8.2' }
npm warn EBADENGINE }
"""
NODE_THROWS = """\
/home/me/a-server/index.js:12
    throw new Error("API_KEY is not set");
          ^

Error: API_KEY is not set
    at main (/home/me/a-server/index.js:12:11) {
  code: 'ERR_NO_KEY',
  missing: [ 'required' ]
}

Node.js v20.20.2
"""
NODE_CAUSE = """\
TypeError: fetch failed
    at node:internal/deps:1:2 {
  [cause]: Error: getaddrinfo ENOTFOUND api.example
      at lookup (node:dns:1:2) {
    errno: -3008,
  }
}
"""
MCP_1 = """\
Traceback (most recent call last):
  File "/x/bin/a-server", line 12, in <module>
    sys.exit(main())
             ^^^^^^
  File "/x/a_server/server.py", line 30, in serve
    @server.list_tools()
     ^^^^^^^^^^^^^^^^^
AttributeError: 'Server' object has no attribute 'list_tools'
"""
IN_A_GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "/x/a.py", line 3, in <module>
  |     trio.run(main)
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/x/b.py", line 9, in main
    |     raise ValueError("no database at db.example")
    | ValueError: no database at db.example
    +------------------------------------
"""
SETTINGS = """\
pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings
API_KEY
  Field required [type=missing, input_value={}, input_type=dict]
"""
BOXED = """\
\\x1b[33mUsage: \\x1b[0ma-server [OPTIONS]
╭─ Error ───────────────────────────────╮
│ Missing option '--url' (env: A_URL).  │
╰───────────────────────────────────────╯
"""
BOXED_TRACEBACK = """\
╭──────────── Traceback (most recent call last) ────────────╮
│ /x/a.py:10 in main                                         │
│ ❱ 10     raise RuntimeError("the required file is gone")    │
╰────────────────────────────────────────────────────────────╯
RuntimeError: the required file is gone
"""
BUILD_FAILS = """\
  \u00d7 Failed to build `a-part==1.0`
  ├─▶ The build backend returned an error
  ╰─▶ Call to `setuptools.build_meta.build_wheel` failed (exit status: 1)

      [stderr]
      ModuleNotFoundError: No module named 'pkg_resources'

      hint: This usually says that a package is wrong
"""
GO_PANICS = """\
panic: dial tcp: no host in address

goroutine 1 [running]:
main.main()
\t/src/main.go:12 +0x1d
exit status 2
"""
RUST_PANICS = "thread 'main' panicked at src/main.rs:5:10:\nAPI_KEY is not set\nnote: run with `RUST_BACKTRACE=1`\n"
ANOTHER_PROGRAM = """\
Installed 30 packages in 12ms
An executable named `a-server` is not provided by package `a-server`.
The following executables are available:
- a_server
"""

PINO = {
    "level": 60,
    "time": 1,
    "pid": 9,
    "err": {"type": "Error", "message": "no key", "stack": "Error: no key\n  at x"},
}
BUNYAN = {"name": "a", "level": 50, "err": {"message": "connect ECONNREFUSED", "name": "Error"}, "msg": "no database"}
WINSTON = {"level": "error", "message": "Missing API_KEY", "timestamp": "2026-01-01T00:00:00Z"}
STRUCTLOG = {
    "event": "cannot start",
    "level": "critical",
    "exception": "Traceback (most recent call last):\n  x\nKeyError: 'A'",
}
ZAP = {
    "level": "fatal",
    "ts": 1.5,
    "caller": "cmd/main.go:12",
    "msg": "no config",
    "error": "open a.yaml: no such file",
}
SLOG = {"time": "2026-01-01T00:00:00Z", "level": "ERROR", "msg": "bad flag", "err": "unknown region"}
INFO = {"level": 30, "msg": "an error: that is none", "time": 1}
CUT = json.dumps({"level": "fatal", "msg": "no key", "stack": "x" * 2000})[:1000] + "…"
WRAPPED = "Error: Command failed: node server.js\n    at ChildProcess.exithandler (node:child_process:1:2)\n"


def logged(*records: object) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


@pytest.mark.parametrize(
    ("text", "words", "advice"),
    [
        ("", "", ""),
        ("npm warn deprecated a@1\n\nError: no key\n    at main (x.js:1)\n\nNode.js v22.1.0\n", "Error: no key", ""),
        ("Traceback (most recent call last):\n  File 'x'\n    run('a')\nKeyError: 'A'\n", "KeyError: 'A'", ""),
        ("x" * 500, "x" * 199 + "…", ""),
        ("a" * 150 + "\n" + "b" * 150, "b" * 150, ""),
        ("call 7 is done\n" * 50 + "no disk\n" + "call 7 is done\n" * 3, "no disk | call 7 is done", ""),
        (
            NO_NETWORK,
            "error: Failed to fetch: https://index.example/simple/a-server/ | "
            "cause: invalid peer certificate: UnknownIssuer | hint: use the certificates of the system",
            "a certificate of its own",
        ),
        (
            NOT_FOUND,
            "npm error: Not Found - GET https://registry.example/a-server | The package 'a-server@*' could not be "
            "found. | Note that you can also install from a | tarball, folder, http url, or git url.",
            "there is no such package",
        ),
        ("npm error code E404\n", "npm error: code E404", "there is no such package"),
        (NO_COMPILER, "npm error: stack Error: not found: make", ""),
        (USAGE, "Error: In-memory databases need --read-write. | Options: | - Give a file instead", ""),
        ("ERROR:a_server:/no/such/place does not exist\n", "ERROR:a_server:/no/such/place does not exist", ""),
        # Wherever it stands
        (ABOVE_A_PAGE_OF_USAGE, "Error: no token was given. | Run `a-server login` first, or pass --token.", ""),
        (UNDER_A_PAGE_OF_OPTIONS, "Missing required argument: region", ""),
        (ARGPARSE, "a-server: error: the following arguments are required: --db", ""),
        (CLAP, "error: the following required arguments were not provided: | --api-key <API_KEY>", ""),
        ("Usage: a-server FILE\n", "Usage: a-server FILE", ""),
        (NODE_THROWS, "Error: API_KEY is not set", ""),
        (NODE_CAUSE, "TypeError: fetch failed | [cause]: Error: getaddrinfo ENOTFOUND api.example", ""),
        (IN_A_GROUP, "ValueError: no database at db.example", ""),
        (
            SETTINGS,
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for Settings | API_KEY | Field "
            "required [type=missing, input_value={}, input_type=dict]",
            "",
        ),
        (BOXED, "Missing option '--url' (env: A_URL).", ""),
        (BOXED_TRACEBACK, "RuntimeError: the required file is gone", ""),
        (
            BUILD_FAILS,
            "ModuleNotFoundError: No module named 'pkg_resources' | hint: This usually says that a package is wrong",
            "",
        ),
        (GO_PANICS, "panic: dial tcp: no host in address", ""),
        (RUST_PANICS, "thread 'main' panicked at src/main.rs:5:10: | API_KEY is not set", ""),
        ("Failed to start server:\nError: no key\n", "Error: no key", ""),
        (
            "These are missing:\n  API_KEY\n  API_URL\nSee the documentation.\n",
            "These are missing: | API_KEY | API_URL | See the documentation.",
            "",
        ),
        ("Please set API_KEY\nError: server exited with code 1\n", "Please set API_KEY", ""),
        ("\\x1b[31m[ERROR]\\x1b[39m no key\n", "[ERROR] no key", ""),
        (
            "2026-01-01 00:00:00,123 - a - ERROR - no key\n2026-01-01 00:00:00,124 - a - INFO - bye\n",
            "a - ERROR - no key",
            "",
        ),
        # Lines of logs that are objects
        (logged(PINO), "no key", ""),
        (logged(BUNYAN), "no database: connect ECONNREFUSED", ""),
        (logged(WINSTON, INFO) + WRAPPED, "Missing API_KEY", ""),
        (logged(STRUCTLOG), "cannot start: KeyError: 'A'", ""),
        ("a-server | " + logged(ZAP) + "exit status 1\n", "no config: open a.yaml: no such file", ""),
        (logged(INFO, SLOG, INFO), "bad flag: unknown region", ""),
        (CUT, "no key", ""),
        (logged({"error": "no key"}), "no key", ""),
        ('time=x level=error msg="no config" err="open a: no such file"\n', "no config: open a: no such file", ""),
        (logged(INFO) + "no disk\n", "an error: that is none | no disk", ""),
        # What started it says that it failed, too
        (
            NODE_THROWS + "npm error code 1\nnpm error path /x\nnpm error command failed\n",
            "Error: API_KEY is not set",
            "",
        ),
        (WRAPPED, "Error: Command failed: node server.js", ""),
        ("npm error code EAI_AGAIN\nnpm error request to x failed", "npm error: request to x failed", "HTTPS_PROXY"),
        # What helps
        (OTHER_ENGINE + NODE_THROWS, "Error: API_KEY is not set", ""),
        (OTHER_ENGINE + "/x/a.js:1\nSyntaxError: Unexpected token\n", "SyntaxError: Unexpected token", OLD_NODE),
        ("SyntaxError: Unexpected token\n", "SyntaxError: Unexpected token", ""),
        (OTHER_ENGINE + logged(PINO), "no key", ""),
        (MCP_1, "AttributeError: 'Server' object has no attribute 'list_tools'", USE_MCP_1),
        (
            "ModuleNotFoundError: No module named 'mcp.server.fastmcp'\n",
            "ModuleNotFoundError: No module named 'mcp.server.fastmcp'",
            USE_MCP_1,
        ),
        (
            "ImportError: cannot import name 'McpError' from 'mcp' (/x/mcp/__init__.py)\n",
            "ImportError: cannot import name 'McpError' from 'mcp' (/x/mcp/__init__.py)",
            USE_MCP_1,
        ),
        ("ModuleNotFoundError: No module named 'mcp_tools'\n", "ModuleNotFoundError: No module named 'mcp_tools'", ""),
        (
            ANOTHER_PROGRAM,
            "An executable named `a-server` is not provided by package `a-server`. | The following "
            "executables are available: | - a_server",
            'put "--from", "a-server", "a_server" in place of "a-server"',
        ),
        (
            "npm error could not determine executable to run\n",
            "npm error: could not determine executable to run",
            "its package has no program",
        ),
    ],
)
def test_the_cause_is_told_wherever_it_stands_and_what_helps(text: str, words: str, advice: str) -> None:
    cause = cause_of(text, UVX)
    assert cause.words == words
    assert advice in cause.advice
    assert bool(cause.advice) == bool(advice)


def test_a_server_for_mcp_1_that_no_uv_starts_says_what_to_install() -> None:
    assert 'install "mcp<2" where it is installed' in cause_of(MCP_1).advice


def test_a_cause_above_a_page_longer_than_what_is_kept_is_told() -> None:
    tail = Tail()
    tail.feed(f"{ABOVE_A_PAGE_OF_USAGE}{OPTIONS * 10}".encode())
    assert cause_of(tail.text()).words.startswith("Error: no token was given.")


def test_of_a_long_line_whose_beginning_is_missing_is_told_that_it_is() -> None:
    tail = Tail()
    tail.feed(b"abcdefg" * 20_000)
    assert cause_of(tail.text(60)).words.startswith("…")


@given(st.text(max_size=3000))
@example("current Python version (3.11) does not satisfy Python>=" + "9" * 300 + ".1")
def test_a_cause_is_one_short_line(text: str) -> None:
    words = cause_of(text).words
    assert len(words) <= MAX_WORDS_CHARS
    assert len(words.splitlines()) <= 1


WORST = [
    "a" * 1000,
    "Error" * 200,
    "a " * 500,
    '"a":"\\\\' * 100,
    "{" + '"a":1,' * 160,
    "exit " * 200,
    "x=" * 500,
    "| " * 500,
    "failed to start " * 60,
    "  at {",
    "a Error" * 140,
    "[" * 1000,
    "level=error msg=" + "x" * 900,
    "A" * 1000,
    "a_" * 500,
]


@pytest.mark.parametrize("line", WORST)
def test_the_worst_output_is_read_by_work_that_grows_with_its_bytes_alone(line: str) -> None:
    begin = time.process_time()
    cause_of("\n".join([line] * 16))
    assert time.process_time() - begin < 1.0, "seconds are what a pattern takes that tries all ways"


def test_the_kinds_are_in_the_order_of_what_they_tell() -> None:
    assert [*Kind] == sorted(Kind)
