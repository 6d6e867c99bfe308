"""What is imported late by others is imported here first: at the start there are descriptors and memory for it.

An import that fails in the middle of the work, because the system has no descriptor left, fails that work. So libraries
that put an import off until a function is called are helped over it before the daemon listens. A test compares what is
loaded then with what is loaded after everything was used once.
"""

from __future__ import annotations

import importlib

LATE = (
    "actors.protocol.wire.outline",  # messages that are large
    "mmap",  # np.memmap
    "concurrent.futures.thread",  # tiktoken
    "encodings.cp437",  # zipfile, of the sentence model
    "encodings.idna",  # names of hosts
    "tiktoken",
    "tiktoken.load",
    "watchdog.events",
    "watchdog.observers",
)
FOR_REMOTE = (
    "actors.transport.http.transport",
    "actors.transport.websocket",
    "supervisor.oauth.accounts",  # logins, and what they take
    "stringprep",  # names of hosts
    "encodings.utf_8_sig",  # event streams
    "truststore",  # httpx2, and what follows
    "httpcore2",
    "httpcore2._async.http11",
    "httpcore2._backends.trio",
)


def preload(*, remote: bool) -> None:
    """Import what would be imported later: 20 ms, 2 MB, ten times that if `remote`. Raises want of resources."""
    for name in (*LATE, *FOR_REMOTE) if remote else LATE:
        importlib.import_module(name)
    # Its plugins are modules of their own. The vocabulary, which costs tens of megabytes, is read at the first count.
    importlib.import_module("tiktoken").list_encoding_names()
