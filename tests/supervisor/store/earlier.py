"""Data directories as each earlier version left them: what a daemon of its last commit wrote, as text.

Each daemon had the servers of `SERVERS`, which are started here as they were there. It called `notes:add_note` three
times, and `off` was switched off. Moments are set to `WRITTEN_AT`; an ended session, a vector, a login, a value and a
replaced definition were added by hand, what is sealed by the code of its version.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from supervisor.host.datadir import KeyName

DIRECTORIES = Path(__file__).with_name("directories")
FIRST = "1-first"
"""Schema 1 before servers could be switched off."""
VERSIONS = [FIRST, *sorted((file.stem.removeprefix("schema-") for file in DIRECTORIES.glob("*.sql")), key=int)]
WRITTEN_AT = 1_795_600_000.0
SESSIONS_END_AT = 1_795_700_000.0
DIGEST = b"digest of a text"

SERVER = r"""import json,sys
for line in sys.stdin:
 m=json.loads(line); i=m.get('id'); k=m.get('method')
 r={'initialize':{'protocolVersion':'2025-06-18','capabilities':{'tools':{}},'serverInfo':{'name':'notes','version':'1'}},'tools/list':{'tools':[{'name':'add_note','description':'Add a note.','inputSchema':{'type':'object','properties':{'text':{'type':'string'}}}}]},'tools/call':{'content':[{'type':'text','text':'added'}]},'ping':{}}.get(k)
 if i is not None: print(json.dumps({'jsonrpc':'2.0','id':i,**({'result':r} if r is not None else {'error':{'code':-32601,'message':'no'}})}),flush=True)
"""  # noqa: E501 - another text is another launch
LAUNCH = {"command": "python3", "args": ["-I", "-c", f"exec({SERVER!r})"]}
SERVERS: dict[str, Any] = {
    "notes": LAUNCH,
    "off": LAUNCH | {"env": {"A": "b"}},
    "tickets": {"url": "http://127.0.0.1:1/mcp", "oauth": {"client_id": "client"}},
}


def schema_of(version: str) -> int:
    return int(version.partition("-")[0])


def make_database(path: Path, version: str) -> None:
    path.touch(0o600)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((DIRECTORIES / f"schema-{schema_of(version)}.sql").read_text(encoding="utf-8"))
        if version == FIRST:
            connection.execute("DROP TABLE disabled_servers")
            connection.commit()


def make_directory(root: Path, version: str) -> None:
    """Make the data directory of a version, with the keys that its database was written under."""
    root.mkdir(mode=0o700)
    make_database(root / "store.sqlite3", version)
    for name in get_args(KeyName):
        key = root / f"{name}.key"
        key.touch(0o600)
        key.write_bytes(f"{name} key of a test, 32 bytes".encode().ljust(32, b".")[:32])
