"""Runs one server and takes all of its processes along, whoever of the three dies. Linux, no privileges.

    python -I -S kill_shim.py CONTROL_FD SOFT HARD GROUP --|--sandbox /absolute/program argument...

A script of its own, started for each server: it imports nothing of this package and as little of the standard library
as it can, because its start is part of every wake (`signal` costs as much as all the rest, hence `_signal`).

CONTROL_FD is one end of a socket pair. We write lines: `pid N` once the server runs or `failed ERRNO` if it could not
be executed, then `exit CODE` or `signal NUMBER`. We read single bytes: `T` asks the server's group to terminate (and
to continue, if it is stopped), `K` kills everything. The end of the file is a `K`: the daemon died, however it died; so
is SIGUSR1: in a fleet, the lease of a daemon that is stopped has ended (`lease_guard.py`).

SOFT and HARD are the limits of open files that the server gets, 0 for those it inherits: the daemon raises its own, and
programs that use select(2) or close all that could be open do not bear a large one. GROUP is the directory of a
control group that the server enters (cgroup v2), if it is not empty; we stay outside.
With `--sandbox` the program is bwrap. We write `refused` if it made no sandbox; why, it said on stderr. A byte on
READY_FD tells that it did. Then N is the init of the sandbox, which leads the session and the process group of the
server: what is sent to that does not reach bwrap, and an init takes no SIGTERM.

- We are a subreaper: whatever the server starts stays below us, also what forked twice or has its own session.
- The server dies with us (`PR_SET_PDEATHSIG`; sound here, where one thread does all, and a trap in the daemon, where
  threads start processes and retire).
- A server that stops us (SIGSTOP) gains nothing by it: we are started in a process group of our own, in the daemon's
  session. When the daemon dies that group is orphaned, and the kernel continues what is stopped in an orphaned group
  (SIGHUP, then SIGCONT: POSIX `_exit`, "orphaned process group"). While the daemon lives, it kills us.
- The server is not reaped before it is reported, so its process group id cannot belong to somebody else.
- Where memory is out, the kernel kills a server before it kills the daemon: servers get `OOM_SCORE`, we do not.
- Standard streams are the server's alone: ours are /dev/null once it runs, so that ends of files go through.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the C half of `signal`, not in typeshed: no enum, half the start-up
import os
import select
import sys

SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM = (
    _signal.SIGHUP,
    _signal.SIGINT,
    _signal.SIGQUIT,
    _signal.SIGKILL,
    _signal.SIGTERM,
)
SIGUSR1, SIGCHLD, SIGCONT, SIGTSTP = _signal.SIGUSR1, _signal.SIGCHLD, _signal.SIGCONT, _signal.SIGTSTP
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SWEEP_ROUNDS, SWEEP_PAUSE_S = 1000, 0.005
CANNOT_EXECUTE, EIO, READY_FD = 126, 5, 9
KILLED = 128  # what bwrap adds to the number of the signal that killed its program
OOM_SCORE = 500  # as if it took half of the memory more than it does (proc(5), `oom_score_adj`)


def prctl(option: int, value: int) -> None:
    """Call prctl(2). The full `ctypes` costs 2.5 ms more than its C half."""
    try:
        import _ctypes

        program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # typeshed lacks None, "this program"
        _ctypes.call_function(_ctypes.dlsym(program, "prctl"), (option, value, 0, 0, 0))
    except (ImportError, AttributeError):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def original_environment() -> dict[bytes, bytes]:
    """Return what we were started with: Python itself may have added LC_CTYPE (PEP 538) to `os.environ`."""
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123 - pathlib costs 5 ms
            entries = file.read().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {name: value for name, equals, value in (entry.partition(b"=") for entry in entries) if equals}


def start(argv: list[str], limits: tuple[int, int, str], ready_in: int = -1) -> tuple[int, int]:
    """Start the server, with `ready_in` as READY_FD; return (its pid, 0), or (0, errno) if it could not be executed."""
    report, child_report = os.pipe()  # closed by a successful exec
    environment = original_environment()
    shim = os.getpid()
    try:
        pid = os.fork()
    except OSError as error:
        return 0, error.errno or 1
    if not pid:
        try:
            if ready_in >= 0:  # no other one of ours that the child needs is as high: there are few
                os.dup2(ready_in, READY_FD)
                os.set_inheritable(READY_FD, True)
            become_server(argv, environment, shim, limits)
        except OSError as error:
            os.write(child_report, b"%d" % (error.errno or 1))
        finally:
            os._exit(CANNOT_EXECUTE)
    os.close(child_report)
    answer = os.read(report, 16)
    os.close(report)
    if answer:
        os.waitpid(pid, 0)
    return (0, int(answer)) if answer else (pid, 0)


def become_server(argv: list[str], environment: dict[bytes, bytes], shim: int, limits: tuple[int, int, str]) -> None:
    """In the child: own session, dies with the shim, default signal dispositions, its limits, then exec."""
    os.setsid()
    prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != shim:
        os._exit(CANNOT_EXECUTE)
    _signal.set_wakeup_fd(-1)
    for number in _signal.valid_signals():
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except OSError:  # SIGKILL, SIGSTOP and what the C library keeps to itself
            continue
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    soft, hard, group = limits
    if group:
        enter(group)
    offer_to_the_oom_killer()
    if soft:
        limit_descriptors(soft, hard)
    os.execve(argv[0], argv, environment)


def start_sandboxed(argv: list[str], limits: tuple[int, int, str], control: int) -> tuple[int, int, int]:
    """Start bwrap; return what `start` does, and the init of the sandbox, 0 without one or if the daemon asks."""
    ready, ready_in = os.pipe()
    pid, number = start(argv, limits, ready_in)
    os.close(ready_in)
    init = 0
    if pid:
        readable, _, _ = select.select((control, ready), (), ())
        if ready in readable and os.read(ready, 1):
            init = children().get(pid, [pid])[0]  # a server may have ended by now, and bwrap ends as it did
    os.close(ready)
    return pid, number, init


def enter(group: str) -> None:
    """Enter a control group. Raises `OSError` of a kind that is tried again: the program is not at fault."""
    try:
        with open(f"{group}/cgroup.procs", "wb", 0) as file:  # noqa: PTH123 - pathlib costs 5 ms
            file.write(b"0")
    except OSError as error:
        raise OSError(EIO, "cannot enter the control group") from error


def offer_to_the_oom_killer() -> None:
    """Raise our score, if it is not higher already; nobody may lower it."""
    try:
        with open("/proc/self/oom_score_adj", "r+b", 0) as file:  # noqa: PTH123 - pathlib costs 5 ms
            if int(file.read()) < OOM_SCORE:
                file.write(b"%d" % OOM_SCORE)
    except (OSError, ValueError):  # no /proc, or none that may be written
        return


def limit_descriptors(soft: int, most: int) -> None:
    """Set the soft limit of open files, at most to the hard one; and that one to `most`, if there is one."""
    import resource  # 0.2 ms, only where it is needed

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most:
        hard = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def children() -> dict[int, list[int]]:
    """Return the children of each process on the machine."""
    by_parent: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs 5 ms
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123 - pathlib costs 5 ms
                line = file.read()
        except OSError:
            continue
        parent = int(line[line.rindex(b")") + 2 :].split(None, 2)[1])
        by_parent.setdefault(parent, []).append(int(entry))
    return by_parent


def kill_descendants() -> None:
    """Send SIGKILL to everything below us."""
    below, todo = children(), [os.getpid()]
    while todo:
        for pid in below.get(todo.pop(), ()):
            todo.append(pid)
            try:
                os.kill(pid, SIGKILL)
            except OSError:  # gone, or another user's
                continue


def reap(server: int) -> tuple[bool, int | None]:
    """Reap what is dead; return whether children are left and the server's wait status if it was among them."""
    status = None
    try:
        while True:
            pid, wait_status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return True, status
            if pid == server:
                status = wait_status
    except ChildProcessError:
        return False, status


def sweep(server: int) -> int | None:
    """Kill and reap until no child is left, for 5 s at most: some cannot be killed. Return the server's status."""
    status = None
    _signal.pthread_sigmask(_signal.SIG_BLOCK, (SIGCHLD,))  # so that it ends the pause below at once
    for _ in range(SWEEP_ROUNDS):
        left, wait_status = reap(server)
        status = wait_status if status is None else status
        if not left:
            break
        kill_descendants()
        _signal.sigtimedwait((SIGCHLD,), SWEEP_PAUSE_S)
    return status


def watch(control: int, server: int, group: int, wakeup: int) -> int | None:
    """Serve the control socket until the server is dead (its status) or all shall die (None)."""
    while True:
        ready, _, _ = select.select((control, wakeup), (), ())
        asked = hear(control) if control in ready else b""
        signals = os.read(wakeup, 512) if wakeup in ready else b""
        if signals and (status := reap(server)[1]) is not None:
            return status
        if SIGUSR1 in signals or (control in ready and (not asked or b"K" in asked)):
            return None
        if b"T" in asked or SIGTERM in signals:
            terminate(group)


def terminate(group: int) -> None:
    """Ask a process group to end, also if it is stopped; that of a sandbox may be gone before bwrap is."""
    try:
        os.killpg(group, SIGTERM)
        os.killpg(group, SIGCONT)
    except OSError:
        return


def hear(control: int) -> bytes:
    """Read what the daemon asks, empty if it is gone (a reset: it died with a line of ours unread)."""
    try:
        return os.read(control, 64)
    except OSError:
        return b""


def tell(control: int, text: str) -> None:
    """Write one line to the daemon, which may be gone."""
    try:
        os.write(control, text.encode() + b"\n")
    except OSError:
        return


def prepare(control: int) -> int:
    """Set up signals and the subreaper; return the end of the pipe that tells of signals."""
    os.set_inheritable(control, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wakeup, wakeup_in = os.pipe()
    os.set_blocking(wakeup_in, False)
    _signal.set_wakeup_fd(wakeup_in, warn_on_full_buffer=False)
    for number in (SIGINT, SIGHUP, SIGQUIT, SIGTSTP):  # a terminal's wishes are the daemon's business
        _signal.signal(number, _signal.SIG_IGN)
    for number in (SIGTERM, SIGCHLD, SIGUSR1):
        _signal.signal(number, lambda *_: None)
    return wakeup


def main(control: int, limits: tuple[int, int, str], argv: list[str], *, sandbox: bool) -> int:
    """Run the server to its end; return the exit code, 128 + the number of a signal."""
    wakeup = prepare(control)
    if sandbox:
        server, number, group = start_sandboxed(argv, limits, control)
    else:
        server, number = start(argv, limits)
        group = server
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.chdir("/")
    if number or not group:
        sweep(server)
        tell(control, f"failed {number}" if number else "refused")
        return CANNOT_EXECUTE
    tell(control, f"pid {group}")
    status = watch(control, server, group, wakeup)
    if status is None:
        status = sweep(server)
    code = -SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    code = KILLED - code if sandbox and code > KILLED else code
    tell(control, f"signal {-code}" if code < 0 else f"exit {code}")
    sweep(server)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    limits = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    os._exit(main(int(sys.argv[1]), limits, sys.argv[6:], sandbox=sys.argv[5] == "--sandbox"))
