"""Which proxy stands before an address: what httpx2 says, but for this machine."""

from __future__ import annotations

import os

import httpx2
import pytest
from httpx2._utils import URLPattern, get_environment_proxies
from hypothesis import given
from hypothesis import strategies as st

from actors.transport.http.client.client import proxy_for

HOSTS = ["a.example", "b.a.example", "ba.example", "10.1.2.3", "[2001:db8::1]", "example"]
URLS = [f"{scheme}://{host}{port}/x" for scheme in ("http", "https") for host in HOSTS for port in ("", ":8080")]
EXCEPTED = ["", "*", ".a.example", "*.a.example", "*a.example", "a.example", "A.Example", "example", " a.example "]
EXCEPTED += ["10.0.0.0/8", "10.1.2.3", "10.1.2.3:8080", "2001:db8::/32", "[2001:db8::1]", "[2001:db8::]/32", "::", "["]
EXCEPTED += ["a.example:8080", "a.example:80", "http://a.example", "https://a.example", "all://a.example", "x/y"]
VARIABLES = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"]
ADDRESSES = ["", "http://p:1", "q:2", "socks5://r:3"]


def by_httpx2(url: str, environment: dict[str, str]) -> str | None:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patterns = sorted((URLPattern(pattern), proxy) for pattern, proxy in get_environment_proxies().items())
    return next((proxy for pattern, proxy in patterns if pattern.matches(httpx2.URL(url))), None)


@given(
    st.sampled_from(URLS),
    st.lists(st.sampled_from(EXCEPTED), max_size=3).map(",".join),
    st.dictionaries(
        st.sampled_from(["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"]),
        st.sampled_from(ADDRESSES),
    ),
)
def test_names_and_variables_mean_what_they_mean_to_httpx2(url: str, excepted: str, named: dict[str, str]) -> None:
    environment = {**named, "NO_PROXY": excepted}
    proxy = proxy_for(httpx2.URL(url), environment)
    assert (None if proxy is None else proxy.url) == by_httpx2(url, environment)
    if proxy is not None:
        assert environment[proxy.variable] in proxy.url


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.1.2.3", "[::1]"])
def test_this_machine_is_asked_directly(host: str) -> None:
    assert (
        proxy_for(httpx2.URL(f"http://{host}:1/mcp"), {"ALL_PROXY": "http://p:1", "http_proxy": "http://p:1"}) is None
    )
