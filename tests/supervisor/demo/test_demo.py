"""The demo works in one go, says what failed when it does not, and its servers are right by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from supervisor.demo import calculator, notes, office, setting, tour, weather_desk
from tests.e2e.fork_server import forking

ROOT = Path(__file__).parents[3]


@pytest.mark.process
async def test_the_demo_shows_every_step_and_exits_with_0() -> None:
    with trio.fail_after(100):
        done = await trio.run_process(
            [*forking(), "-m", "supervisor", "demo"], capture_stdout=True, capture_stderr=True, stdin=b"", cwd=ROOT
        )
    output = done.stdout.decode()
    steps = [line for line in output.splitlines() if line[:1].isdigit()]
    assert [line.partition(".")[0] for line in steps] == ["1", "2", "3", "4", "5", "6", "7"]
    assert "notifications/tools/list_changed arrived over WebSocket" in output
    assert "107 tools of 7 servers" in output
    assert "server processes are gone" in output
    assert done.stderr == b""


@pytest.mark.process
async def test_the_demo_says_what_failed_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(setting, "SMALL", {**setting.SMALL, "notes": "no_such_module"})
    monkeypatch.setattr(tour, "STEP_S", 1.0)
    with trio.fail_after(60):
        assert await trio.to_thread.run_sync(tour.run_tour) == 1
    said = capsys.readouterr().err
    assert '"1. Servers come up: spawn, handshake, discover" was not done within 1 s' in said
    assert "The daemon's log ends with:" in said


@pytest.mark.process
async def test_a_daemon_that_does_not_start_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(setting.TourFailed, match="unknown key"), trio.fail_after(30):
        async with setting.running_daemon(tmp_path, {"mcpServers": {}, "nonsense": 1}, forking()):
            raise AssertionError("it must not start")


@pytest.mark.parametrize(("expression", "value"), [("(2 + 3) * 4", 20), ("-7 % 4", 1), ("1 / 4", 0.25), ("2 - -2", 4)])
def test_the_calculator_calculates(expression: str, value: float) -> None:
    assert calculator.calculate({"expression": expression}) == {"value": value}


@pytest.mark.parametrize("expression", ["2 ** 9999", "__import__('os')", "1 / 0", "1 +", "'a' * 9", "1" * 300])
def test_the_calculator_refuses_what_is_no_arithmetic(expression: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        calculator.calculate({"expression": expression})


def test_numbers_are_described() -> None:
    assert calculator.describe_numbers({"numbers": [1, 2, 6]}) == {
        "count": 3,
        "mean": 3.0,
        "median": 2.0,
        "stdev": 7**0.5,
    }
    with pytest.raises(ValueError, match="no numbers"):
        calculator.describe_numbers({"numbers": []})


def test_notes_are_found_again() -> None:
    notes.add_note({"title": "milk", "text": "two litres"})
    assert "milk" in notes.list_notes({})["titles"]
    assert notes.search_notes({"words": "LITRES"}) == {"titles": ["milk"]}


def test_a_weather_station_is_opened_once_and_closed_once(capsys: pytest.CaptureFixture[str]) -> None:
    weather_desk.open_station({"place": "Bergen"})
    weather_desk.close_station({"place": "bergen"})
    assert capsys.readouterr().out.count("notifications/tools/list_changed") == 2
    with pytest.raises(ValueError, match="no station"):
        weather_desk.close_station({"place": "Bergen"})
    with pytest.raises(ValueError, match="letters only"):
        weather_desk.open_station({"place": "New York"})


def test_office_records_are_created_changed_found_and_deleted() -> None:
    records = office.Records("ticket")
    created = records.create({"title": "Printer on fire"})
    assert records.update({"id": 1, "title": "Printer wet"}) == {"id": 1, "title": "Printer wet"} == created
    assert records.list({}) == {"total": 1, "items": [created]}
    assert records.search({"words": "WET"}) == {"items": [created]}
    assert records.count({"title": "Printer wet"}) == {"count": 1}
    assert records.delete({"id": 1}) == created
    with pytest.raises(ValueError, match="there is no ticket 1"):
        records.get({"id": 1})


@pytest.mark.parametrize("department", office.DEPARTMENTS)
def test_every_office_tool_has_a_description_and_described_parameters(department: str) -> None:
    server = office.build(department)
    listed: list[dict[str, Any]] = server._perform("tools/list", {})["tools"]
    assert len(listed) == 7 * len(office.DEPARTMENTS[department])
    for tool in listed:
        assert tool["description"]
        assert all(described["description"] for described in tool["inputSchema"]["properties"].values())
