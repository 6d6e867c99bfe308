"""The container and the service start what the command line has, with the settings that they say they have."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from supervisor.cli import cli
from supervisor.commands.outcomes import EXIT_CONFIG
from supervisor.commands.run import check_exposure
from supervisor.config import Settings, load

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DOCKERFILE = (EXAMPLES / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
UNIT = (EXAMPLES / "mcpvisor.service").read_text(encoding="utf-8")
SERVICE = (ROOT / "docs" / "guides" / "service.md").read_text(encoding="utf-8")


def parsed(words: list[str]) -> tuple[str, dict[str, object]]:
    """The subcommand and the options of a command line of ours. Raises `click.UsageError`."""
    program, name, *rest = words
    assert Path(program).name == "mcpvisor"
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return name, command.make_context(name, rest).params


def instructions(name: str) -> list[str]:
    """What follows every instruction of that name in the Dockerfile."""
    return [" ".join(line.split()) for line in re.findall(rf"^ *{name} +(.*)$", DOCKERFILE, re.MULTILINE)]


def test_the_container_runs_the_daemon_where_it_can_be_published() -> None:
    name, options = parsed(json.loads(instructions("CMD")[-1]))
    assert name == "run"
    assert options == {
        "config": Path("/config/mcp.json"),
        "listen": "0.0.0.0:3001",
        "data_dir": Path("/data"),
        "idle_exit": None,
        "log_format": None,
        "as_node": False,
    }
    assert (instructions("VOLUME"), instructions("EXPOSE")) == (["/data"], ["3001"])


def test_the_container_does_not_run_as_root() -> None:
    (user,) = instructions("USER")
    assert user != "root"
    assert f"{user}" in " ".join(instructions("RUN"))
    assert "-m 0700 -o mcpvisor -g mcpvisor /data" in " ".join(instructions("RUN"))


def test_the_container_is_asked_for_its_health() -> None:
    check = DOCKERFILE[DOCKERFILE.index("HEALTHCHECK") :].splitlines()[0]
    words = json.loads(check.partition("CMD ")[2])
    assert words[:2] == ["python", "-c"]
    ast.parse(words[2])
    assert "http://127.0.0.1:3001/healthz" in words[2]


def test_the_builder_gets_what_is_copied() -> None:
    sent = (EXAMPLES / "Dockerfile.dockerignore").read_text().splitlines()
    for line in instructions("COPY"):
        if not line.startswith("--from"):
            for source in line.split()[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in sent
    stages = [line.split()[0] for line in instructions("FROM")]
    assert len(set(stages)) == 1, "what is built for one Python does not run on another"


def test_the_configuration_of_the_container_may_be_published() -> None:
    settings = load(EXAMPLES / "container.json", {"HOME": "/home/me"}).settings
    check_exposure(settings)
    assert (settings.listen, settings.auth, settings.insecure_http) == ("0.0.0.0:3001", "tokens", True)


def test_the_lines_of_the_page_publish_on_the_loopback_address_only() -> None:
    (line,) = [line for line in SERVICE.splitlines() if line.startswith("docker run")]
    words = shlex.split(line)
    assert words[words.index("-p") + 1] == "127.0.0.1:3001:3001"
    mounted = words[words.index("-v") + 1].removeprefix("$PWD/").partition(":")[0]
    assert (ROOT / mounted).is_file()
    assert f"# {line}" in DOCKERFILE


def value(key: str) -> str:
    """The only value of a key of the unit."""
    (written,) = re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)
    return str(written)


def test_the_service_runs_the_daemon() -> None:
    name, options = parsed(shlex.split(value("ExecStart").replace("%h", "/home/me")))
    assert name == "run"
    assert options["config"] == Path("/home/me/.config/mcpvisor/mcp.json")


def test_the_service_knows_exit_codes_and_times_of_the_daemon() -> None:
    assert int(value("RestartPreventExitStatus")) == EXIT_CONFIG
    assert float(value("TimeoutStopSec")) > Settings().shutdown_s
    assert (value("Restart"), value("KillMode"), value("NoNewPrivileges")) == ("on-failure", "mixed", "yes")


def test_the_service_has_a_place_for_secrets_that_need_not_be_there() -> None:
    assert value("EnvironmentFile") == "-%h/.config/mcpvisor/environment"
    assert "`~/.config/mcpvisor/environment`" in SERVICE


@pytest.mark.process
def test_systemd_finds_nothing_wrong_with_the_service(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    program = str(Path(sys.executable).with_name("mcpvisor"))
    unit = tmp_path / "mcpvisor.service"
    unit.write_text(UNIT.replace("%h/.local/bin/mcpvisor", program))
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "mcpvisor" in line]
    assert (done.returncode, ours) == (0, [])
