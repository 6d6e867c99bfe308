"""Where a message goes if its server is not quite where it was said to be: redirects, within the origin only.

What a server, or whoever answers in its place, names as another origin is never asked, and never gets a header of ours.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx2

MAX_REDIRECTS = 3


async def post(client: httpx2.AsyncClient, url: httpx2.URL, head: Mapping[str, str], body: bytes) -> httpx2.Response:
    """Return the head of the answer to a POST, whose body is still to be read and closed.

    That of a redirect (307, 308: RFC 9110 15.4.8) which leads out of the origin, or on and on, is returned as it is.
    """
    for followed in range(MAX_REDIRECTS + 1):
        request = client.build_request("POST", url, headers=head, content=body)
        response = await client.send(request, stream=True)
        if response.status_code not in (307, 308) or followed == MAX_REDIRECTS:
            break
        target = url.join(response.headers.get("location", ""))
        if _origin(target) != _origin(url):
            break
        await response.aclose()
        url = target
    return response


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
