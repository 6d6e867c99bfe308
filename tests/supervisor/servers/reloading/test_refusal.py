"""The header that says that the configuration is refused: visible ASCII within bounds, whatever the fault has in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from supervisor.servers.reloading.refusal import MAX_CHARS, fault_of, value_of


@given(st.text(max_size=2 * MAX_CHARS))
def test_any_fault_comes_back_and_its_header_is_one_line_of_visible_ascii(fault: str) -> None:
    value = value_of(fault)
    assert value.isascii()
    assert value.isprintable()
    assert len(value) <= 12 * MAX_CHARS
    assert fault_of(value) == fault.strip()[:MAX_CHARS].encode(errors="replace").decode()


def test_what_people_write_is_readable_in_the_header() -> None:
    assert value_of('mcp.json:3: a: unknown key (did you mean "command"?)') == (
        'mcp.json:3: a: unknown key (did you mean "command"?)'
    )
    assert fault_of("") == ""
    assert len(fault_of("%41" * 100_000)) <= 12 * MAX_CHARS
