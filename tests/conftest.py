"""What holds for all tests: the same signals whoever starts them, the same examples in continuous integration."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# A parent such as nohup, or a shell that starts us in the background, leaves these ignored, and children inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: how long an example takes depends on what else the machine does.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
