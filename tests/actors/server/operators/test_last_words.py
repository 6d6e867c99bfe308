"""What is told of why a program ended. The texts are those of published programs, in our own words."""

from __future__ import annotations

import pytest

from actors.server.operators.record import SILENT, ending
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
    assert ending(Exit(signal=9), NPX) == ""


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_that_ends_at_its_start_without_a_word_says_what_to_do(code: int) -> None:
    assert ending(Exit(code=code), None) == f"; {SILENT}"
    assert ending(Exit(code=code, asked=True), None) == ""
    assert ending(Exit(code=code), None, served=True) == ""


def test_of_two_outputs_the_one_is_quoted_that_names_an_error() -> None:
    exit_ = Exit(code=1, last_stderr="Error: Command failed: node server.js", last_stdout="Error: no key")
    assert ending(exit_, None) == "; last words: Error: no key"
