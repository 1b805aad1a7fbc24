# SPDX-License-Identifier: Apache-2.0
"""Common parts of the private servers in services.py: ports, start, stop, kill, restart."""
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path


_claims = []  # what says of the ports given here that they are, for as long as this process lives


class ServiceError(Exception):
    """A service that did not start, or an action it cannot do as it is."""


def port_is_free(port):
    """True when a server could listen on 127.0.0.1:port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port():
    """A free port below the range that outgoing connections take theirs from.

    A port of that range could be gone, or even be connected to itself by a client that retries,
    while the service that owns it is down. For the same reason no port is given twice, to other
    processes neither, such as those of a test run."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as limits:
        end = max(int(limits.read().split()[0]), 12000)
    for port in random.sample(range(10000, end), end - 10000):
        if claim(port) and port_is_free(port):
            return port
    raise ServiceError("no free port found")


def claim(port):
    """False when a process of this machine, perhaps this one, was given the port, and lives."""
    claimed = socket.socket(socket.AF_UNIX)
    try:
        claimed.bind(f"\0tidings-port-{port}")
    except OSError:
        claimed.close()
        return False
    _claims.append(claimed)
    return True


def state_of(task):
    """The letter of /proc/…/task/TID: T if it is stopped, X if it does not exist."""
    try:
        return (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def is_running(pid):
    """False for a process all of whose threads are stopped or have ended."""
    return any(state_of(task) not in "TtZX" for task in Path(f"/proc/{pid}/task").glob("*"))


def wait_until(condition, timeout, what):
    """Polls condition() until it is true and returns its value; ServiceError after timeout."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise ServiceError(f"timed out after {timeout} s: {what}")
        time.sleep(0.01)


class Service:
    """One server. Subclasses say how it is prepared, started and asked whether it answers."""

    name = "service"
    programs = ()  # what /proc/PID/exe may be called
    stop_signal = signal.SIGTERM
    start_timeout = 60

    def __init__(self, directory, port=None, log=None):
        self.directory = Path(directory).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.home = self.directory  # where the processes run, and keep their data
        self.port = port or free_port()
        self.log = Path(log) if log else self.directory / f"{self.name}.log"
        self._child = None

    # What subclasses fill in.
    def prepare(self):
        """Prepares the first start."""

    def command(self):
        """(argv, environment) of the server."""
        raise NotImplementedError

    def ready(self):
        """Asks once, within about a second, whether the server answers."""
        raise NotImplementedError

    def user(self):
        """The user to run as (a pwd entry), or None for the caller's own."""
        return None

    # What all share.
    def pids(self):
        """The live processes of this service, started by any process; the main one first."""
        if self._child is not None:
            self._child.poll()  # a child that ended is a zombie until someone asks
        found = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                 if self._owns(pid)]
        main = self._recorded_pid()
        return sorted(found, key=lambda pid: (pid != main, pid))

    def _owns(self, pid):
        try:
            where = os.readlink(f"/proc/{pid}/cwd").removesuffix(" (deleted)")
            what = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        except FileNotFoundError:
            return pid == self._recorded_pid() and self._ends(pid)
        except OSError:
            return False  # another user's
        return where == str(self.run_directory()) and os.path.basename(what) in self.programs

    @staticmethod
    def _ends(pid):
        """True for a process that gives back its memory or whose threads still end: until that is
        done it holds its port."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            return stat.rpartition(")")[2].split()[0] not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
        except OSError:
            return False

    def run_directory(self):
        return self.home

    def _recorded_pid(self):
        try:
            return int((self.directory / "pid").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    @property
    def pid(self):
        """The main process, or None when it is dead (even if children of it linger)."""
        main = self._recorded_pid()
        return main if main is not None and main in self.pids() else None

    @property
    def exit_code(self):
        """Exit status of the last process this object started: negative for a signal, None while
        it runs or when it was started by another process."""
        return self._child.poll() if self._child is not None else None

    def start(self, wait=True, timeout=None):
        """Starts the server unless it runs; returns when it answers (or at once: wait=False)."""
        if self.pid is None:
            self.kill()
            self.prepare()
            if not port_is_free(self.port):
                raise ServiceError(f"{self.name}: port {self.port} is in use by another program")
            self._spawn()
        if wait:
            self.wait_ready(timeout)

    def _spawn(self):
        argv, environment = self.command()
        user = self.user()
        identity = {}
        if user is not None:
            identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with open(self.log, "ab") as log:
            self._child = subprocess.Popen(
                argv, cwd=self.run_directory(), env=environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True, **identity)
        (self.directory / "pid").write_text(f"{self._child.pid}\n", encoding="ascii")

    def wait_ready(self, timeout=None):
        """Returns when the server answers; ServiceError when it ends or is late."""
        def answered():
            if self._child is not None and self._child.poll() is not None:
                raise ServiceError(f"{self.name} exited with status {self._child.returncode}:\n"
                                   f"{self.log_tail()}")
            return self.ready()
        wait_until(answered, timeout or self.start_timeout,
                   f"{self.name} does not answer, see {self.log}")

    def log_tail(self, lines=15):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def kill(self, sig=signal.SIGKILL):
        """Sends sig to every process of the service; waits until SIGKILL has ended, or SIGSTOP has stopped, all of them."""
        self._signal_running(sig)
        if sig in (signal.SIGKILL, signal.SIGSTOP):  # twice: a process listed the first time may have forked before it stopped
            wait_until(lambda: not self._signal_running(sig) and not self._signal_running(sig), 60,
                       f"{self.name} keeps running after {sig.name}")

    def _signal_running(self, sig):
        """Sends sig to every process, for SIGSTOP to those that are not stopped; their pids."""
        running = [pid for pid in self.pids() if sig != signal.SIGSTOP or is_running(pid)]
        for pid in running:
            self._signal(pid, sig)
        return running

    @staticmethod
    def _signal(pid, sig):
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            pass

    def stop(self, timeout=30):
        """Orderly stop, by force when that takes longer than timeout. Returns the exit code (see
        exit_code). Nothing of the service runs afterwards."""
        main = self.pid
        if main is not None:
            self.kill(signal.SIGCONT)
            self._signal(main, self.stop_signal)
            try:
                wait_until(lambda: not self.pids(), timeout, "")
            except ServiceError:
                pass
        self.kill()
        (self.directory / "pid").unlink(missing_ok=True)
        if self._child is not None:
            self._child.wait(60)  # /proc forgets a process a little before its parent is told
        return self.exit_code

    def restart(self, timeout=None):
        """Stops its remaining processes and starts it again: same data, same port."""
        self.stop(timeout=5)
        self.start(timeout=timeout)

    def wipe(self):
        """Deletes the directory with all data. The service must be stopped."""
        if self.pids():
            raise ServiceError(f"{self.name} is still running")
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.home != self.directory:
            shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
