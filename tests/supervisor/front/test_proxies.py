"""Where a request comes from, as a proxy says that is believed, and nobody else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.front.edge.fields import Fields
from supervisor.front.guard import FORWARDED, TrustedProxies, is_from_here

PROXIES = TrustedProxies(["10.0.0.0/8", "fd00::1"])


def listed(text: str, name: bytes = b"x-forwarded-for") -> Fields:
    return Fields({name: text.encode("latin-1", "replace")})


@pytest.mark.parametrize(
    ("peer", "line", "sender"),
    [
        ("10.0.0.5", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.5", "6.6.6.6, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.5", "6.6.6.6, 192.0.2.1, 10.1.1.1", "192.0.2.1"),
        ("::ffff:10.0.0.5", "192.0.2.1", "192.0.2.1"),
        ("fd00::1", "2001:db8::1", "2001:db8::1"),
        ("10.0.0.5", "192.0.2.1, nonsense", None),
        ("10.0.0.5", "10.0.0.6", "10.0.0.6"),
        ("10.0.0.5", "", None),
        ("192.0.2.9", "192.0.2.1", None),
        ("", "192.0.2.1", None),
    ],
)
def test_the_last_that_is_no_proxy_of_ours_sent_it(peer: str, line: str, sender: str | None) -> None:
    assert PROXIES.sender(peer, listed(line)) == sender


@pytest.mark.parametrize(
    ("line", "sender"),
    [
        ("for=192.0.2.1;proto=https;by=10.0.0.5", "192.0.2.1"),
        ('for="[2001:db8::1]:4711"', "2001:db8::1"),
        ('proto=https; For="192.0.2.1:80"', "192.0.2.1"),
        ("for=6.6.6.6, for=192.0.2.1", "192.0.2.1"),
        ("for=unknown", None),
        ("for=_hidden", None),
    ],
)
def test_so_it_is_in_the_standard_form(line: str, sender: str | None) -> None:
    assert PROXIES.sender("10.0.0.5", listed(line, b"forwarded")) == sender


def test_what_is_there_twice_says_nothing() -> None:
    fields = Fields({b"x-forwarded-for": b"192.0.2.1"}, frozenset({b"x-forwarded-for"}))
    assert PROXIES.sender("10.0.0.5", fields) is None
    assert PROXIES.sender("10.0.0.5", Fields({})) is None


@given(st.text(max_size=60), st.sampled_from([b"forwarded", b"x-forwarded-for"]))
def test_whatever_stands_there_raises_nothing(line: str, name: bytes) -> None:
    assert PROXIES.sender("192.0.2.9", listed(line, name)) is None
    PROXIES.sender("10.0.0.5", listed(line, name))


def test_only_proxies_and_this_machine_may_connect_where_they_encrypt() -> None:
    connecting = [peer for peer in ("10.2.3.4", "127.0.0.1", "::1", "192.0.2.1", "") if PROXIES.may_connect(peer)]
    assert connecting == ["10.2.3.4", "127.0.0.1", "::1"]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", "198.51.100.1"])
def test_a_program_of_this_machine_is_here_by_whatever_address_it_comes(address: str) -> None:
    """198.51.100.1 is the one that the request came to: a machine that names itself so sends from it, too."""
    assert is_from_here(address, "198.51.100.1", (b"host",))
    assert not any(is_from_here(address, "198.51.100.1", (b"host", name)) for name in FORWARDED)
    assert not is_from_here("198.51.100.2", "198.51.100.1", ())
