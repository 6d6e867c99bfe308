"""Has a fork server start a process, and stands for it: `start_forked.py ADDRESS ARGUMENT...`, see `fork_server.py`.

The process has the streams, the environment and the directory of this one, and is ended with it; signals are passed on,
and this ends as the process does. Next to nothing is imported here, as the start of a Python is what is to be saved.
"""

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, which takes its time
import _socket
import marshal
import os
import sys

address, *arguments = sys.argv[1:]
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
server.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, 400_000)
server.connect(b"\0" + address.encode())
directory = os.getcwd()  # noqa: PTH109 - pathlib takes its time
order = marshal.dumps((arguments, dict(os.environ), directory, None, ""))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([order], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
process = int(server.recv(20))
for number in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda number, frame: os.kill(process, number))
for stream in range(3):  # whoever reads what the process writes has to see its end
    os.close(stream)
code = int(server.recv(20) or -_signal.SIGKILL)
if code < 0:
    if code != -_signal.SIGKILL:
        _signal.signal(-code, _signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
