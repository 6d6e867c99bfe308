"""What to do about programs that are missing or complain; the texts are those of published programs, shortened."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.errors import SpawnFailed
from actors.server.operators.record import ending
from actors.transport.base import Exit
from actors.transport.stdio.causes import cause_of
from actors.transport.stdio.command import resolve_command
from actors.transport.stdio.remedies import PROVIDERS, how_to_install, how_to_provide, provider_of


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("npx", "npx comes with Node.js: install Node.js 20"),
        ("/usr/bin/uvx", "uvx comes with uv: install uv: python -m pip install uv"),
        ("uv", "install uv: "),
        ("docker", "install Docker: "),
        ("python3", "python3 comes with Python: install Python"),
    ],
)
def test_how_a_missing_program_is_installed_is_known(command: str, says: str) -> None:
    assert how_to_install(command).startswith(says)


def test_of_another_program_nothing_is_said() -> None:
    assert (how_to_install("my-server"), provider_of("my-server")) == ("", None)


def test_a_program_has_one_provider_which_is_asked_by_one_of_its_programs() -> None:
    programs = [program for provider in PROVIDERS for program in provider.programs]
    assert len(set(programs)) == len(programs)
    assert all(provider.asked in ("", *provider.programs) for provider in PROVIDERS)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("npm warn EBADENGINE Unsupported engine {\nSyntaxError: x", "its Node.js may be too old"),
        ("a-server requires Node.js >=20\n", "its Node.js may be too old"),
        ("npm error code SELF_SIGNED_CERT_IN_CHAIN", "a certificate of its own"),
        (
            "error: Failed to fetch: https://i/\n  cause: invalid peer certificate: UnknownIssuer",
            "certificate of its own",
        ),
        ("npm error code EAI_AGAIN\nnpm error request to https://r/x failed", "npm does not reach the address"),
        ("npm ERR! network request to https://r/x failed, reason: connect ECONNREFUSED", "set HTTPS_PROXY"),
        ("npm error code E404\nnpm error 404 Not Found - GET https://r/x", "there is no such package"),
        ("  cause: Because a-server was not found in the package registry and", "there is no such package"),
        ("error: Failed to fetch: `https://index.example/simple/a/`", "uv does not reach the address"),
        ("npm error code ENOSPC", "the disk is full"),
        ("docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "start Docker"),
        ("permission denied while trying to connect to the Docker daemon socket", "group docker"),
    ],
)
def test_what_a_program_complains_of_has_its_advice_in_the_reason_of_the_failure(text: str, says: str) -> None:
    advice = cause_of(text).advice
    assert says in advice
    assert ending(Exit(code=1, last_stderr=text), None).endswith(f"; {advice}")


@pytest.mark.parametrize(
    "text",
    ["Error: connect ECONNREFUSED 127.0.0.1:5432", "404 Not Found", "error sending request for url (https://api/)"],
)
def test_what_a_server_says_of_its_own_matters_gets_no_advice(text: str) -> None:
    assert cause_of(text).advice == ""


ORNAMENT = st.text(" \t\r\n-=*#|.~_", max_size=500)
"""Words may be another complaint, and a later one may be the cause."""


@given(ORNAMENT, ORNAMENT)
def test_whatever_stands_around_it_that_says_nothing_a_complaint_has_its_advice(before: str, after: str) -> None:
    assert cause_of(f"{before}\nnpm error code E404\n{after}").advice


def test_a_failed_start_says_how_to_install_what_is_missing() -> None:
    with pytest.raises(SpawnFailed) as caught:
        resolve_command("npx", path="/nowhere", cwd="/")
    assert caught.value.message == "command 'npx' was not found on the PATH"
    assert caught.value.detail == "command 'npx' was not found on PATH /nowhere"
    assert caught.value.hint == how_to_install("npx")


def test_a_script_whose_interpreter_is_missing_says_how_to_install_that(tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("#!/usr/bin/env deno\n")
    script.chmod(0o755)
    with pytest.raises(SpawnFailed) as caught:
        resolve_command(str(script), path="/nowhere", cwd="/")
    assert caught.value.hint == how_to_install("deno")


def test_what_is_said_of_a_missing_program_is_how_to_install_it_or_where_it_may_be() -> None:
    assert how_to_provide("npx", "get it").startswith("get it, or write its absolute path; a service often")
    assert how_to_provide("npz", "", "npx").startswith('did you mean "npx"? Or install it, or write')
    assert how_to_provide("/bin/npx", "") == "correct the path, or install the program"
    assert how_to_provide("/bin/server", "get node") == "get node"
