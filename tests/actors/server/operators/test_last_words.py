"""What is told of why a program ended. The texts are those of published programs, in our own words."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.server.operators.last_words import MAX_WORDS_CHARS, ending, last_words
from actors.transport.base import Exit
from actors.transport.stdio.installer import Installer

UVX = Installer("uvx")
NPX = Installer("npx", "a-server")

TOO_OLD = """\
error: No solution found when resolving tool dependencies
  cause: Because the current Python version (3.11.7) does not satisfy Python>=3.12 and every version of a-server depends
         on Python>=3.12, we can conclude that every version of a-server cannot be used.
         And because you require a-server, we can conclude that your requirements are unsatisfiable.
"""
TOO_OLD_BEFORE = """\
  \u00d7 No solution found when resolving tool dependencies:
  ╰─▶ Because the current Python version (3.11.7) does not satisfy
      Python>=3.12 and every version of a-server depends on Python>=3.12,
      we can conclude that your requirements are unsatisfiable.
"""
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        ("npm warn deprecated a@1\n\nError: no key\n    at main (x.js:1)\n\nNode.js v22.1.0\n", "Error: no key"),
        ("Traceback (most recent call last):\n  File 'x'\n    run('a')\nKeyError: 'A'\n", "KeyError: 'A'"),
        ("x" * 500, "x" * 199 + "…"),
        ("a" * 150 + "\n" + "b" * 150, "b" * 150),
        ("call 7 is done\n" * 50 + "no disk\n" + "call 7 is done\n" * 3, "no disk | call 7 is done"),
        (TOO_OLD, "the current Python version (3.11.7) does not satisfy Python>=3.12"),
        (TOO_OLD_BEFORE, "the current Python version (3.11.7) does not satisfy Python>=3.12"),
        (
            NO_NETWORK,
            "error: Failed to fetch: https://index.example/simple/a-server/ | "
            "cause: invalid peer certificate: UnknownIssuer | hint: use the certificates of the system",
        ),
        (
            NOT_FOUND,
            "npm error: Not Found - GET https://registry.example/a-server | The package 'a-server@*' could not be "
            "found. | Note that you can also install from a | tarball, folder, http url, or git url.",
        ),
        ("npm error code E404\n", "npm error: code E404"),
        (NO_COMPILER, "stack Error: not found: make | cwd /home/me | not ok"),
        (USAGE, "Error: In-memory databases need --read-write. | Options: | - Give a file instead"),
        ("ERROR:a_server:/no/such/place does not exist\n", "ERROR:a_server:/no/such/place does not exist"),
    ],
)
def test_last_words_are_what_may_be_a_reason(text: str, words: str) -> None:
    assert last_words(text) == words


@given(st.text(max_size=3000))
@example("current Python version (3.11) does not satisfy Python>=" + "9" * 300 + ".1")
def test_last_words_are_one_short_line(text: str) -> None:
    words = last_words(text)
    assert len(words) <= MAX_WORDS_CHARS
    assert len(words.splitlines()) <= 1


@pytest.mark.parametrize("text", [TOO_OLD, TOO_OLD_BEFORE])
def test_a_server_that_needs_another_python_says_how_to_ask_for_it(text: str) -> None:
    said = ending(Exit(code=1, last_stderr=text), UVX)
    assert said == (
        "; last words: the current Python version (3.11.7) does not satisfy Python>=3.12; "
        'put "--python", "3.12" first into its args'
    )


def test_a_server_that_needs_an_older_python_says_how_to_ask_for_it() -> None:
    said = ending(Exit(code=1, last_stderr=TOO_OLD.replace("Python>=3.12", "Python<3.11")), UVX)
    assert said.endswith('put "--python", "3.10" first into its args')


def test_a_server_that_says_on_stdout_what_is_missing_is_quoted() -> None:
    said = ending(Exit(code=2, last_stderr="npm notice x\n", last_stdout="Please set API_KEY\n"), NPX)
    assert said == "; last words: Please set API_KEY"


def test_stderr_is_quoted_before_stdout() -> None:
    assert ending(Exit(code=1, last_stderr="no disk", last_stdout="welcome"), None) == "; last words: no disk"


def test_a_script_of_a_package_that_fails_is_quoted_from_npms_log_and_how_to_see_more() -> None:
    said = ending(Exit(code=1, install_log="the postinstall script of b@1.0.0 failed with code 1"), NPX)
    assert said == (
        "; npx: the postinstall script of b@1.0.0 failed with code 1; to see why: npx --foreground-scripts -y a-server"
    )


def test_an_installer_that_fails_without_a_word_is_named_and_what_to_do() -> None:
    said = ending(Exit(code=1, last_stderr="npm notice New minor version of npm available!\n"), NPX)
    assert said.endswith("; to see why: npx --foreground-scripts -y a-server")
    assert ending(Exit(code=1), UVX).endswith("; try the command in a terminal")
    assert ending(Exit(code=1), None) == ending(Exit(signal=9), NPX) == ""
