"""Sends a request to an IP address that was looked up, and checked, before: a second look-up cannot lead elsewhere.

The head and TLS have the name all the same, and certificates are verified against that.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

import httpx2
import trio


async def look_up(host: str) -> list[str]:
    """Return the IP addresses of a host. Raises `OSError`, `UnicodeError`."""
    rows = await trio.socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


async def send_to(
    client: httpx2.AsyncClient,
    verb: str,
    url: httpx2.URL,
    headers: Mapping[str, str],
    body: bytes | None,
    hops: Sequence[str | None],
) -> httpx2.Response:
    """Return the answer, whose body is not read yet, of the first of the addresses that can be connected to.

    None is for the URL's own. `client` must not be used for another name: its connections are told apart by the
    address. Raises `httpx2.HTTPError`.
    """
    host = url.netloc.decode("ascii")
    for place, hop in enumerate(hops):
        at = url if hop is None else url.copy_with(host=hop)
        request = client.build_request(
            verb,
            at,
            headers={**headers, "host": host, "accept-encoding": "identity"},
            content=body,
            extensions={"sni_hostname": url.host},
        )
        try:
            return await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            if place == len(hops) - 1:
                raise
    raise httpx2.ConnectError("no address")
