"""Where an IP address leads that somebody else names."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.transport.http.addresses import plain, where

NOT_GLOBAL = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
]
"""What is not globally reachable by IANA's registry of IPv4, and multicast."""
NOT_GLOBAL_6 = [
    *("::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/32", "2001:2::/48", "2001:10::/28"),
    *("2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
]
"""The same of IPv6, and multicast and what was site-local (RFC 3879)."""
EMBEDDING = ["::ffff:0:0/96", "64:ff9b::/96", "::/96", "::ffff:0:0:0/96"]


def within(networks: list[str]) -> st.SearchStrategy[IPv4Address | IPv6Address]:
    return st.sampled_from([ip_network(each) for each in networks]).flatmap(lambda each: st.ip_addresses(network=each))


@pytest.mark.case("H08")
@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("8.8.8.8", "public"),
        ("2606:4700::1111", "public"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "private"),
        ("fd00::1", "private"),
        ("127.0.0.1", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"),
        ("169.254.169.254", "elsewhere"),
        ("fe80::1%eth0", "elsewhere"),
        ("::ffff:169.254.169.254", "elsewhere"),
        ("0.0.0.0", "elsewhere"),
        ("224.0.0.1", "elsewhere"),
        ("240.0.0.1", "elsewhere"),
        ("a name", "elsewhere"),
        ("203.0.114.1", "public"),
        ("223.255.255.254", "public"),
        ("2002:808:808::", "public"),
        ("64:ff9b::808:808", "public"),
        ("64:ff9b::a01:203", "private"),
        ("::", "elsewhere"),
        ("198.18.0.1", "elsewhere"),
        ("2001:db8::1", "elsewhere"),
        ("2001::1", "elsewhere"),
        ("ff02::1", "elsewhere"),
        ("4000::1", "elsewhere"),
    ],
)
def test_where_an_address_leads(address: str, place: str) -> None:
    assert where(address) == place


@given(within([*NOT_GLOBAL, *NOT_GLOBAL_6]))
def test_what_is_not_globally_reachable_is_never_public(address: IPv4Address | IPv6Address) -> None:
    assert where(str(address)) != "public"


@given(within(NOT_GLOBAL), st.sampled_from(EMBEDDING))
def test_nor_is_it_inside_of_an_address_of_ipv6(address: IPv4Address, prefix: str) -> None:
    assert where(str(IPv6Address(int(IPv6Network(prefix).network_address) | int(address)))) != "public"
    assert where(str(IPv6Address((0x2002 << 112) | (int(address) << 80) | 1))) != "public"  # 6to4 (RFC 3056 2)


@given(st.ip_addresses(v=4))
def test_what_is_in_none_of_these_is_public(address: IPv4Address) -> None:
    assert (where(str(address)) == "public") is not any(address in IPv4Network(each) for each in NOT_GLOBAL)


@pytest.mark.parametrize(
    "url",
    ["https://a.example:0", "https://", "ftp://a.example", "https://a@b.example", "https://a.example/\n", "https://["],
)
def test_an_address_that_hides_or_lacks_something_is_not_plain(url: str) -> None:
    assert plain(url) is None
    assert plain("https://a.example/x?y") is not None
