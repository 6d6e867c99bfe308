"""How a client starts the bridge, where its address begins with `stdio+`: the rest is that of the daemon's door.

Whoever runs a client says in the environment what starts the bridge: the daemon has a Python of its own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

PIPED = "stdio+"
ROOT = str(Path(__file__).parents[3])


def parameters(url: str) -> dict[str, Any]:
    """Return what both SDKs start a server with."""
    command, *arguments = json.loads(os.environ["BRIDGE"])
    return {"command": command, "args": [*arguments, url.removeprefix(PIPED)], "cwd": ROOT}
