"""Which addresses may be asked that somebody names."""

from __future__ import annotations

import pytest

from supervisor.oauth.issuers.metadata import OAuthTrouble, check_addresses, check_scheme, is_local_name


@pytest.mark.parametrize(
    "address",
    [
        *("fec0::1", "feff::1", "64:ff9b:1::1", "64:ff9b:1::808:808", "::127.0.0.1", "::10.0.0.1"),
        *("::ffff:0:127.0.0.1", "::ffff:0:169.254.169.254", "192.0.0.8", "192.0.0.170", "192.88.99.1"),
    ],
)
def test_an_address_that_is_not_out_in_the_world_is_not_asked(address: str) -> None:
    with pytest.raises(OAuthTrouble, match="private network"):
        check_addresses("b.example", [address], "a.example", ["93.184.216.34"])


@pytest.mark.parametrize(
    "url",
    [
        *("", "ftp://a.example", "https://", "https://a.example:0", "https://a.example:x", "javascript:alert(1)"),
        *("https://user@a.example", "https://:pw@a.example", "https://a.example/ü", "https://a.example/a b"),
        *("https://a.example/\n", "https://[::1", "https://a.example/" + "x" * 3000, "file:///etc/passwd"),
    ],
)
def test_what_is_no_plain_address_is_not_asked(url: str) -> None:
    with pytest.raises(OAuthTrouble, match="no plain https address"):
        check_scheme(url, "https://a.example/mcp")


def test_without_tls_only_this_machine_and_what_the_operator_wrote() -> None:
    for url, operators in (
        ("http://b.example", "https://a.example/mcp"),
        ("http://127.0.0.1:1", "https://a.example/mcp"),
        ("http://b.example", "http://localhost:1/mcp"),
        ("http://a.example:81", "http://a.example/mcp"),
    ):
        with pytest.raises(OAuthTrouble, match="without TLS"):
            check_scheme(url, operators)
    for url, operators in (
        ("https://b.example", "http://a.example/mcp"),
        ("http://a.example/x", "http://a.example/mcp"),
        ("http://127.0.0.1:1", "http://localhost:2/mcp"),
    ):
        assert check_scheme(url, operators).hostname
    assert is_local_name("login.localhost")
    assert not is_local_name(None)


@pytest.mark.case("H08")
def test_every_address_of_a_name_must_be_allowed() -> None:
    own, here = "a.example", ["93.184.216.34"]
    check_addresses("b.example", ["8.8.8.8", "2606:4700::1111"], own, here)
    check_addresses(own, ["10.0.0.1", "169.254.1.1"], own, here)  # what the operator wrote
    check_addresses("b.example", ["8.8.8.8", "10.0.0.2"], own, ["10.0.0.1"])
    check_addresses("b.example", ["127.0.0.1"], "localhost", ["127.0.0.1"])
    for addresses, operators in (
        ([], here),
        (["10.0.0.1"], here),
        (["8.8.8.8", "127.0.0.1"], here),
        (["127.0.0.1"], ["10.0.0.1"]),
        (["10.0.0.1"], ["127.0.0.1"]),
        (["169.254.169.254"], ["169.254.1.1"]),
    ):
        with pytest.raises(OAuthTrouble, match="private network"):
            check_addresses("b.example", addresses, own, operators)
