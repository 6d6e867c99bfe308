"""Opens the HTTP client of one server: by the proxy of the environment that stands before it, or directly."""

from __future__ import annotations

import os
import ssl

import httpx2

from actors.errors import SpawnFailed
from actors.transport.http.client.proxies import EnvironmentProxy, proxy_for
from actors.transport.http.client.reading import bound_reading


def proxy_before(url: str) -> str:
    """Return the name of the variable of the environment whose proxy stands before an address; empty for none."""
    proxy = proxy_for(httpx2.URL(url), os.environ)
    return "" if proxy is None else proxy.variable


def way_to(url: str, trusted: ssl.SSLContext, limits: httpx2.Limits) -> httpx2.AsyncHTTPTransport:
    """Return what sends requests to an address. Raises `SpawnFailed` where its proxy cannot be used."""
    bound_reading()
    proxy = proxy_for(httpx2.URL(url), os.environ)
    if proxy is None:
        return httpx2.AsyncHTTPTransport(verify=trusted, limits=limits)
    try:
        return httpx2.AsyncHTTPTransport(verify=trusted, proxy=proxy.url, limits=limits)
    except (ImportError, ValueError, TypeError, httpx2.InvalidURL) as error:
        raise SpawnFailed(_unusable(proxy, error), permanent=True) from error


def _unusable(proxy: EnvironmentProxy, error: Exception) -> str:
    """Say why a proxy cannot be used; its address may hold a password."""
    socks = isinstance(error, ImportError)  # of the package that speaks it
    kind = "a SOCKS proxy, which is not supported" if socks else "no HTTP proxy that can be used"
    return (
        f"{proxy.variable} in the environment of the daemon names {kind}: "
        "give the address of an HTTP proxy (http://host:port), or except this server in NO_PROXY"
    )
