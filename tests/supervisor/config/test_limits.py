"""What a configuration takes for an address or a header is one for the HTTP client, too: `check` and `run` agree."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.config.values import is_address, launch_faults

_PIECES = ["http://", "https://", "a", "a.example", "xn--", "é", "\U0001f600", "..", "[", "]", "::1", "127.0.0.1"]
_PIECES += [
    "][",
    "256.1.1.1",
    ":",
    "80",
    "99999",
    "@",
    "/",
    "?",
    "#",
    "%41",
    "%",
    " ",
    "\t",
    "\\",
    "_",
    "-",
    "\u200b",
    "\uff41",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=6).map(lambda parts: "http://" + "".join(parts)))
def test_what_is_taken_for_an_address_is_one_for_the_client(url: str) -> None:
    if is_address(url, "http"):
        assert httpx2.URL(url).host
        assert httpx2.AsyncClient(trust_env=False).build_request("POST", url).url.raw_host


@given(st.text(st.sampled_from("a~ \t\x01\x7f\x80é\U0001f600\r\n\0"), max_size=5))
def test_what_is_taken_for_a_header_is_one_for_the_client(value: str) -> None:
    if not list(launch_faults({"headers": {"x": value}})):
        assert httpx2.Headers({"x": value})["x"] == value


@pytest.mark.parametrize(
    "url",
    ["http://localhost", "http://ex\u00e4mple.com:1/x", "http://[::1]:1/", "http://a_b.c.", "https://1.2.3.4/?a=b"],
)
def test_ordinary_addresses_are_taken(url: str) -> None:
    assert is_address(url, "http")
