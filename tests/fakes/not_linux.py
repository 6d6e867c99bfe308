"""Takes away from our modules what only Linux has, as macOS and the BSDs do; trio and the standard library keep it.

Imported by `sitecustomize` of a process, before any module of ours. Ours get other `sys`, `select` and so on by their
import statements; of /proc and of sockets without a name on the disk the interpreter itself says that they are not
there.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import resource
import sys
from collections.abc import Mapping
from types import CodeType, ModuleType
from typing import Any, Final

import trio  # noqa: F401 - it decides what it waits by when it is imported

OPEN_MAX: Final = 10_240
"""More descriptors the kernel of macOS refuses, whatever the hard limit says: EINVAL, as `ValueError`."""


class Without(ModuleType):
    """A module without some of its names, and with others instead."""

    def __init__(self, module: ModuleType, missing: set[str], other: Mapping[str, Any]) -> None:
        self.__dict__.update(__name__=module.__name__, _module=module, _missing=missing, **other)

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} here")
        return getattr(self._module, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._module, name, value)


def _setrlimit(what: int, limits: tuple[int, int]) -> None:
    if what == resource.RLIMIT_NOFILE and limits[0] > OPEN_MAX:
        raise ValueError("current limit exceeds maximum limit")
    resource.setrlimit(what, limits)


class _NoProgram:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"symbol not found: {name}")


def _replacements() -> dict[str, ModuleType]:
    import _signal  # type: ignore[import-not-found]
    import ctypes
    import os
    import select
    import signal
    import socket
    import time

    wakes = {"sigtimedwait", "sigwaitinfo", "pidfd_send_signal"}
    epoll = {name for name in dir(select) if "epoll" in name.lower()}
    calls = ("pidfd", "P_PIDFD", "eventfd", "memfd", "sched_", "splice")
    of_tcp = {"TCP_USER_TIMEOUT", "TCP_KEEPIDLE", "TCP_QUICKACK", "TCP_CORK", "TCP_INFO", "TCP_DEFER_ACCEPT"}
    of_sockets = {"SO_PEERCRED", "SO_PASSCRED", "SO_INCOMING_CPU", "SOCK_CLOEXEC", "SOCK_NONBLOCK"}
    return {
        "sys": Without(sys, set(), {"platform": "darwin"}),
        "select": Without(select, epoll | {"POLLRDHUP"}, {"PIPE_BUF": 512}),
        "os": Without(os, {name for name in dir(os) if name.startswith(calls)}, {}),
        "signal": Without(signal, wakes, {}),
        "_signal": Without(_signal, wakes, {}),
        "resource": Without(resource, {"prlimit"}, {"setrlimit": _setrlimit}),
        "time": Without(time, {"CLOCK_BOOTTIME"}, {}),
        "ctypes": Without(ctypes, set(), {"CDLL": lambda name=None, **options: _NoProgram()}),
        "socket": Without(socket, of_tcp | of_sockets, {}),
    }


def _import(name: str, *more: Any, **options: Any) -> Any:
    return _REPLACED.get(name) or builtins.__import__(name, *more, **options)


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
        code = self.get_code(module.__name__)
        assert isinstance(code, CodeType)
        exec(code, module.__dict__)


class _Finder:
    """Loads our modules by `_Loader`."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] not in ("actors", "supervisor"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        return spec


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir"):
        path = arguments[0] if arguments else None
        text = path.decode(errors="replace") if isinstance(path, bytes) else str(path)
        if text == "/proc" or text.startswith(("/proc/", "/sys/fs/cgroup")):
            raise FileNotFoundError(2, "No such file or directory", text)
    elif event in ("socket.bind", "socket.connect"):
        address = arguments[1]
        if isinstance(address, str | bytes) and address[:1] in ("\0", b"\0"):
            raise OSError(22, "Invalid argument")


_REPLACED: Final = _replacements()
sys.meta_path.insert(0, _Finder())
sys.addaudithook(_audit)
