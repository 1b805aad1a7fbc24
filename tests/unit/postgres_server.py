# SPDX-License-Identifier: Apache-2.0
"""A private Postgres for one unit test program, which starts this and communicates with it through pipes.

Prints the server's URL, then obeys one command a line and answers each with "ok": kill (SIGKILL),
freeze (SIGSTOP), thaw (SIGCONT), start. When its input ends, it stops and deletes the server. Tests kill processes,
never the machine: the server's writes are safe with the kernel, and a slow disk slows no test."""
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.services import Postgres


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C ends the test program, and so the input
    directory = tempfile.mkdtemp(prefix="tidings-unit-", dir="/var/tmp")
    postgres = Postgres(directory, settings={"fsync": "off"})
    actions = {
        "kill": postgres.kill,
        "freeze": lambda: postgres.kill(signal.SIGSTOP),
        "thaw": lambda: postgres.kill(signal.SIGCONT),
        "start": postgres.start,
    }
    try:
        postgres.start()
        print(postgres.url, flush=True)
        for line in sys.stdin:
            actions[line.strip()]()
            print("ok", flush=True)
    finally:
        postgres.stop()
        postgres.wipe()


main()
