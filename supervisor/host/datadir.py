"""The daemon's directory: where it is, who may use it, and the secrets in it.

- By default the state directory of the XDG base directory specification 0.8 (state: data that should persist between
  restarts and is not worth a backup).
- One daemon per directory: an exclusive lock of the kernel, which dies with its owner and is therefore never stale.
- The directory is made with mode 0700 and its files with 0600, whatever the umask. What others may have written is not
  believed: neither the directory nor a file in it.
- Every failure is a `ConfigError` that says what to do, found when the directory is opened; only want of resources is
  left as it is, because it is nobody's mistake and passes.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import pwd
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, get_args

from actors.errors import ConfigError
from actors.kit import is_want
from actors.kit.paths import absolute
from supervisor.host.files import make_private, write_atomically
from supervisor.host.places import default_data_dir
from supervisor.identity.operator_key import KEY_BYTES, read_key
from supervisor.store.database import examine

LOCK_NAME = "daemon.lock"
KeyName = Literal["launch", "session", "oauth", "page", "request-state", "values", "webhooks", "fleet"]
"""The keys of a daemon, each a file."""
_OF_FLEET: Final = frozenset({"launch", "session", "request-state"})
"""Those that all nodes of a fleet have in common: what one has named or sealed, another one knows."""

DATABASE = "store.sqlite3"
PUBLISHED: Final = "published.json"
"""What was published for the fleet of this node, as it came."""
OCCUPIED = "another daemon uses this data directory"
MAX_PID_BYTES = 32


class DataDir:
    """An open data directory. Use `open_data_dir`."""

    def __init__(self, root: Path, lock_fd: int, boot: str = "") -> None:
        self.root = root
        self.lock_fd = lock_fd
        """Holds the lock: so does every process that inherits it."""
        self.private: tuple[Path, ...] = (root,)
        """What no server in a sandbox may see."""
        self.fleet_keys: tuple[bytes, ...] = ()
        """What a fleet has in common, if this daemon is in one, the newest first: keys that all nodes need are made of
        them."""
        self.boot = bytes.fromhex(boot) or secrets.token_bytes(KEY_BYTES)
        """Known to this process alone, or to the nodes of a machine: what is sealed with it means nothing to those that
        are started later."""
        self.life = secrets.token_bytes(8)
        """Names this process: what it gives names to lives in its memory."""
        self.database = root / DATABASE
        self.tokenizer_cache = root / "tokenizer"  # tiktoken makes it, and keeps its vocabulary there
        self.logs = root / "logs"  # of servers, made when there is something to write
        self.model = root / "model"  # made once there are weights of the sentence model

    @property
    def mark(self) -> str:
        """Return what tells this daemon from every other, 32 hexadecimal digits; nothing secret follows from it."""
        return hashlib.blake2b(self.key("session"), digest_size=16, person=b"mcpvisor mark").hexdigest()

    @property
    def place(self) -> str:
        """Return what tells this directory from every other one, also in a fleet; nothing secret follows from it."""
        return hashlib.blake2b(self.key("page"), digest_size=16, person=b"mcpvisor place").hexdigest()

    def older_keys(self, name: KeyName) -> list[bytes]:
        """Return the keys of that name that were used before it, which a fleet accepts while they are changed."""
        return [_derive(key, name) for key in self.fleet_keys[1:]]

    def key(self, name: KeyName) -> bytes:
        """Return the secret key of that name, made at the first call. Raises `ConfigError` if it is of no use."""
        if self.fleet_keys and name in _OF_FLEET:
            return _derive(self.fleet_keys[0], name)
        path = self.root / f"{name}.key"
        try:
            if not os.path.lexists(path):  # the lock keeps other daemons out
                write_atomically(path, secrets.token_bytes(KEY_BYTES))
            return read_key(path)
        except OSError as error:
            raise _unusable(path, error) from error


def previous_of(published: Path) -> Path:
    """Return where what was published before is kept, for the case that the newest cannot be used at a start."""
    return published.with_name(f"previous-{published.name}")


def _derive(key: bytes, name: KeyName) -> bytes:
    return hmac.digest(key, name.encode(), hashlib.sha256)


@contextmanager
def open_data_dir(
    path: Path | None, environ: Mapping[str, str], lock_fd: int | None = None, boot: str = ""
) -> Iterator[DataDir]:
    """Lock the data directory for the block, making it if it is missing; `None` is the default place.

    `lock_fd`: the lock, where another process has it and passed it on, and `boot`, what nodes of a machine have in
    common, in hexadecimal digits. Raises `ConfigError` if there is no such place,
    if it cannot be written, or others can, or another daemon has it.
    """
    root = make_data_dir(default_data_dir(environ) if path is None else path)
    for problem in problems_of(root):
        raise problem
    inherited = lock_fd is not None
    lock_fd = open_private(root / LOCK_NAME, os.O_RDWR) if lock_fd is None else lock_fd
    try:
        if not inherited:
            _lock(root, lock_fd)
        yield DataDir(root, lock_fd, boot)
    finally:
        os.close(lock_fd)


def make_data_dir(path: Path) -> Path:
    """Return the absolute path of a directory of ours, which is made if it is missing.

    Raises `ConfigError` where it cannot be made, or others can write it.
    """
    root = Path(absolute(str(path)))
    try:
        make_private(root)
        problem = _trouble_with(root, root.stat())
    except (OSError, ValueError) as error:
        raise _unusable(root, error) from error
    if problem is not None:
        raise problem
    return root


def open_private(path: Path, flags: int) -> int:
    """Return a descriptor of a file in a directory of ours, which is made if it is missing. Raises `ConfigError`."""
    try:
        return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(path, error) from error


def problems_of(root: Path) -> list[ConfigError]:
    """Return why the directory cannot be used, as far as that shows without a lock; nothing is made or changed."""
    try:
        about = root.stat()
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:  # the latter is Python's, for a path with a NUL character
        return [_unusable(root, error)]
    problem = _trouble_with(root, about)
    if problem is not None:
        return [problem]
    keys = ((read_key, root / f"{name}.key") for name in get_args(KeyName))
    problems: list[ConfigError] = []
    for examination, path in ((examine, root / DATABASE), *keys):
        try:
            examination(path)
        except FileNotFoundError:
            continue
        except ConfigError as error:
            problems.append(error)
        except OSError as error:
            problems.append(_unusable(path, error))
    return problems


def _trouble_with(root: Path, about: os.stat_result) -> ConfigError | None:
    """Return why a directory of this kind, owner and mode is none for secrets."""
    if not stat.S_ISDIR(about.st_mode):
        return ConfigError(
            "the data directory is a file", path=str(root), hint="name a directory, or none: one is made"
        )
    if about.st_uid not in {os.geteuid(), 0}:
        return ConfigError(
            f"the data directory belongs to another user ({_user(about.st_uid)})",
            path=str(root),
            hint="run the daemon as that user, or name another data directory",
        )
    if about.st_mode & 0o022:
        return ConfigError(
            "others can write the data directory: it must have mode 0700",
            path=str(root),
            hint="chmod 700 it if you trust what is in it, or name another data directory",
        )
    return None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"


def _lock(root: Path, lock_fd: int) -> None:
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.pread(lock_fd, MAX_PID_BYTES, 0).decode("ascii", "replace").strip()
        raise ConfigError(
            f"{OCCUPIED} (pid {owner or 'unknown'})",
            path=str(root),
            hint="stop it first, or give this one a data directory of its own",
        ) from None
    except OSError as error:
        raise _unusable(root, error) from error
    with suppress(OSError):  # the number is a service to people; a full disk is no reason to end
        os.ftruncate(lock_fd, 0)
        os.pwrite(lock_fd, f"{os.getpid()}\n".encode(), 0)


def _unusable(path: Path, error: OSError | ValueError) -> ConfigError:
    """Return what to say of an error of the disk. Raises it, with the path, if it is want of resources."""
    reason = error.strerror if isinstance(error, OSError) else None
    if isinstance(error, OSError) and is_want(error):
        raise OSError(error.errno, reason, str(path)) from error
    return ConfigError(
        f"the data directory cannot be used: {reason or error}",
        path=str(path),
        hint="make it writable for this user, or name another data directory",
    )
