"""Commands and environments: one absolute path or a reason that helps, and nothing of ours in a server by accident."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from actors.errors import SpawnFailed
from actors.kit import is_want
from actors.transport.stdio.command import (
    DEFAULT_PATH,
    build_environment,
    check_strings,
    explain_exec,
    nearest_command,
    no_thread,
    resolve_command,
    working_directory,
)


def program(place: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)
    return place


def refusal(command: str, path: Path | str, cwd: Path) -> str:
    with pytest.raises(SpawnFailed) as caught:
        resolve_command(command, path=str(path), cwd=str(cwd))
    assert caught.value.permanent
    return caught.value.detail


def test_a_bare_name_is_found_on_the_path_in_order(tmp_path: Path) -> None:
    first = program(tmp_path / "one" / "server")
    program(tmp_path / "two" / "server")
    path = f"{tmp_path / 'none'}:{first.parent}:{tmp_path / 'two'}"
    assert resolve_command("server", path=path, cwd="/") == str(first)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = program(tmp_path / "real")
    link = tmp_path / "link"
    link.symlink_to(real)
    assert resolve_command("link", path=str(tmp_path), cwd="/") == str(link)


def test_a_name_with_a_slash_is_relative_to_the_working_directory(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "server")
    assert resolve_command("bin/server", path="/bin", cwd=str(tmp_path)) == f"{tmp_path}/bin/server"


@pytest.mark.case("N10")
def test_a_program_planted_in_the_working_directory_is_not_run(tmp_path: Path) -> None:
    program(tmp_path / "npx-planted")
    for path in (".", "", ":", "bin"):
        assert "was not found" in refusal("npx-planted", path, tmp_path)


def test_an_unknown_command_says_which_path_and_which_name_is_near(tmp_path: Path) -> None:
    near = program(tmp_path / "mcp-filesystem")
    program(tmp_path / "mcp-filesytem-data", mode=0o644)
    message = refusal("mcp-filesytem", tmp_path, tmp_path)
    assert f"'mcp-filesytem' was not found on PATH {tmp_path}" in message
    assert message.endswith(f"did you mean {near.name}?")


@pytest.mark.case("N01")
def test_clients_do_not_learn_which_path_is_searched(tmp_path: Path) -> None:
    program(tmp_path / "script", "#!/usr/bin/env nosuchnode\n")
    for command in ("nope", "script"):
        with pytest.raises(SpawnFailed, match="not found on the PATH") as caught:
            resolve_command(command, path=str(tmp_path), cwd="/")
        assert str(tmp_path) not in caught.value.message
        assert str(tmp_path) in caught.value.detail


@pytest.mark.parametrize("line", ["tool -y some-package", "tool @scope/package", "{here}/tool @scope/package"])
def test_a_whole_command_line_is_refused_with_where_its_words_belong(tmp_path: Path, line: str) -> None:
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(SpawnFailed, match="those after it belong into `args`") as refused:
        resolve_command(line.replace("{here}", str(tmp_path)), path=str(tmp_path), cwd="/")
    assert refused.value.permanent


def test_no_suggestion_is_made_if_nothing_is_alike(tmp_path: Path) -> None:
    program(tmp_path / "zzz")
    assert "did you mean" not in refusal("filesystem", tmp_path, tmp_path)
    assert nearest_command("filesystem", f"{tmp_path}/missing") is None


@pytest.mark.case("N02")
def test_a_directory_a_plain_file_and_a_dangling_link_have_their_own_reasons(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    program(tmp_path / "plain", mode=0o644)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    reasons = {"folder": "is a directory", "plain": "is not executable", "dangling": "is a dangling symbolic link"}
    for name, reason in reasons.items():
        assert refusal(str(tmp_path / name), "/bin", tmp_path).endswith(reason)
        assert refusal(name, tmp_path, tmp_path).endswith(reason)
    assert refusal("./missing", "/bin", tmp_path) == "./missing: no such file"


def test_a_later_entry_of_the_path_wins_over_an_unusable_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "one" / "server").mkdir(parents=True)
    usable = program(tmp_path / "two" / "server")
    assert resolve_command("server", path=f"{tmp_path}/one:{tmp_path}/two", cwd="/") == str(usable)


def test_a_file_as_an_entry_of_the_path_is_skipped(tmp_path: Path) -> None:
    entry = program(tmp_path / "file")
    assert "was not found" in refusal("server", entry, tmp_path)


@pytest.mark.case("N02")
@pytest.mark.parametrize(
    ("first_line", "reason"),
    [
        ("#!/no/such/python\n", "the interpreter /no/such/python of its first line cannot be used: no such file"),
        ("#!/tmp\n", "the interpreter /tmp of its first line cannot be used: is a directory"),
        ("#!/bin/sh\r\n", "its first line ends with a carriage return"),
        ("#!/usr/bin/env nosuchnode\n", "the interpreter nosuchnode of its first line was not found on PATH"),
        ("#!/usr/bin/env -S nosuchnode --flag\n", "the interpreter nosuchnode of its first line was not found on"),
    ],
)
def test_a_script_without_its_interpreter_names_it(tmp_path: Path, first_line: str, reason: str) -> None:
    script = program(tmp_path / "script", first_line)
    assert f"{script}: {reason}" in refusal("script", tmp_path, tmp_path)


@pytest.mark.parametrize(
    "first_line", ["#!/bin/sh -e\n", "#!\n", "#!/usr/bin/env -i sh\n", "#!/usr/bin/env A=1 sh\n", "\x7fELF", ""]
)
def test_a_script_with_its_interpreter_and_what_we_cannot_judge_pass(tmp_path: Path, first_line: str) -> None:
    script = program(tmp_path / "script", first_line)
    assert resolve_command("script", path=f"{tmp_path}:/usr/bin:/bin", cwd="/") == str(script)


@pytest.mark.parametrize("command", ["", "a\0b"])
def test_an_empty_command_is_refused(command: str, tmp_path: Path) -> None:
    assert "empty" in refusal(command, "/bin", tmp_path)


def test_a_name_that_is_too_long_is_refused_with_the_systems_words(tmp_path: Path) -> None:
    assert "too long" in refusal("./" + "x" * 300, "/bin", tmp_path)


@pytest.mark.case("N03")
def test_a_working_directory_must_be_one(tmp_path: Path) -> None:
    assert working_directory(str(tmp_path)) == str(tmp_path)
    file = program(tmp_path / "file")
    (tmp_path / "loop").symlink_to("loop")
    for cwd, reason in (
        (tmp_path / "gone", "does not exist"),
        (file, "is not a directory"),
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "loop" / "x", "Too many levels"),
    ):
        with pytest.raises(SpawnFailed, match=reason) as caught:
            working_directory(str(cwd))
        assert caught.value.permanent


@pytest.mark.case("N06")
@pytest.mark.parametrize(
    ("args", "environment", "place"),
    [
        (["fine", "a\0b"], {}, "argument 1"),
        ([], {"A=B": "x"}, "'A=B' is not a name"),
        ([], {"": "x"}, "'' is not a name"),
        ([], {"TOKEN": "secret\0"}, "variable TOKEN"),
    ],
)
def test_what_no_kernel_accepts_is_named_without_its_value(
    args: list[str], environment: dict[str, str], place: str
) -> None:
    with pytest.raises(SpawnFailed, match=place) as caught:
        check_strings(args, environment)
    assert caught.value.permanent
    assert "secret" not in caught.value.message


@pytest.mark.case("N11")
def test_a_server_inherits_a_few_variables_and_gets_the_configured_ones() -> None:
    base = {"HOME": "/h", "PATH": "/bin", "TZ": "UTC", "AWS_SECRET": "s", "LD_PRELOAD": "x", "https_proxy": "p"}
    found = build_environment({"TOKEN": "t", "TZ": "CET"}, base)
    assert found == {"HOME": "/h", "PATH": "/bin", "TZ": "CET", "https_proxy": "p", "TOKEN": "t"}


def test_a_path_is_always_there_and_shell_functions_never_are() -> None:
    assert build_environment({}, {"TERM": "() { :; }; echo"}) == {"PATH": DEFAULT_PATH}


@pytest.mark.case("N05")
@pytest.mark.parametrize(
    ("number", "permanent", "words"),
    [
        (errno.ENOEXEC, True, "neither a program nor a script"),
        (errno.E2BIG, True, "too long"),
        (errno.EACCES, True, "Permission denied"),
        (errno.ETXTBSY, False, "Text file busy"),
        (errno.EMFILE, False, "the daemon has no free file descriptors (EMFILE)"),
        (errno.ENFILE, False, "the system has no free file descriptors (ENFILE)"),
        (errno.EAGAIN, False, "the daemon may not start more processes or threads (EAGAIN)"),
        (errno.ENOMEM, False, "the system has no free memory (ENOMEM)"),
        (errno.ENOBUFS, False, "the system has too little of something: No buffer space available"),
    ],
)
def test_a_failed_exec_is_permanent_unless_it_was_for_want_of_resources(
    number: int, permanent: bool, words: str
) -> None:
    cause = OSError(number, os.strerror(number))
    error = explain_exec("/bin/server", cause)
    assert error.permanent is permanent
    assert error.scarce == is_want(cause)
    assert words in error.message


def test_a_thread_that_cannot_be_had_is_want_and_no_other_error_of_its_kind_is() -> None:
    assert no_thread(RuntimeError("can't start new thread")).scarce
    with pytest.raises(RuntimeError, match="a bug"):
        no_thread(RuntimeError("a bug"))


@pytest.mark.parametrize(
    "name", ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "HTTPS_PROXY", "no_proxy"]
)
def test_certificates_and_proxies_of_this_machine_reach_every_server(name: str) -> None:
    assert build_environment({}, {name: "/etc/x"})[name] == "/etc/x"
    assert build_environment({name: "/own"}, {name: "/etc/x"})[name] == "/own"
