# SPDX-License-Identifier: Apache-2.0
"""./dev image: the Dockerfile built without a Docker engine, by buildah in chroots, from a base
image that debootstrap makes with this machine's own apt settings. ./dev test image: that the image
serves, as it would be run. Both need root, which ./dev takes through sudo where nothing else is
asked for, and write below build/image alone."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from tools import reference, release
from tools.project import BUILD, ROOT, Failure, call
from tools.services import Postgres, Redis, Tidings, wait_until

STORE = BUILD / "image"
BASE = "docker.io/library/debian:trixie-slim"
IMAGE = "localhost/tidings:latest"  # and with the version in place of "latest"
BUILDAH = ["buildah", "--storage-driver", "vfs", "--root", str(STORE / "storage"),
           "--runroot", str(STORE / "run")]
APT = Path("/etc/apt")


def output(argv):
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, argv))}:\n{done.stderr.strip()}")
    return done.stdout.strip()


def has_image(name):
    return subprocess.run([*BUILDAH, "inspect", "--type", "image", name], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def mirror():
    """The address that this machine's apt gets Debian from, for debootstrap; None: its default."""
    for path in [*APT.glob("sources.list.d/*.sources"), APT / "sources.list"]:
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            words = line.split()
            if words[:1] == ["URIs:"]:
                return words[1]
            if words[:1] == ["deb"]:
                return next(word for word in words[1:] if "://" in word)
    return None


def make_base():
    """Makes the image that the Dockerfile starts from: Debian's smallest, with the way to packages that this machine takes."""
    print(f"dev: creating {BASE} with debootstrap", flush=True)
    with tempfile.TemporaryDirectory(dir=STORE) as scratch:
        tree = Path(scratch, "tree")
        log = STORE / "debootstrap.log"
        with open(log, "wb") as out:
            done = subprocess.run(
                ["debootstrap", "--variant=minbase", "--include=ca-certificates", "trixie", tree,
                 *filter(None, [mirror()])], check=False, stdout=out, stderr=out)
        if done.returncode != 0:
            raise Failure(f"debootstrap failed, see {log}")
        shutil.rmtree(tree / "var/cache/apt/archives")
        shutil.copytree(APT / "apt.conf.d", tree / "etc/apt/apt.conf.d", dirs_exist_ok=True)
        container = output([*BUILDAH, "from", "scratch"])
        call([*BUILDAH, "add", "--quiet", container, tree, "/"], stdout=subprocess.DEVNULL)
        call([*BUILDAH, "commit", "--quiet", "--rm", container, BASE], stdout=subprocess.DEVNULL)


def main(_=None):
    if os.geteuid() != 0:
        raise Failure("building an image needs root; run ./dev test image by itself: it uses sudo")
    STORE.mkdir(parents=True, exist_ok=True)
    if not has_image(BASE):
        make_base()
    reference.bring()  # here, because chroots may not know of this machine's own way to a registry
    # The format of Docker, because OCI's own has no HEALTHCHECK.
    call([*BUILDAH, "build", "--isolation", "chroot", "--pull-never", "--format", "docker",
          "--quiet", "--tag", IMAGE, ROOT])
    versioned = IMAGE.replace("latest", release.version())
    call([*BUILDAH, "tag", IMAGE, versioned])
    print(f"dev: built {IMAGE} and {versioned} in {STORE.relative_to(ROOT)}/storage")


class Container:
    """A container of the image, on this machine's network."""

    def __init__(self, settings):
        self.name = output([*BUILDAH, "from", "--pull-never", IMAGE])
        environment = [word for key, value in settings.items()
                       for word in ("--env", f"{key}={value}")]
        self._run = [*BUILDAH, "run", "--isolation", "chroot", *environment, self.name, "--"]

    def run(self, *command):
        """Runs a command in it; returns its exit status and output."""
        done = subprocess.run([*self._run, "timeout", "60", *command], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.strip()

    def serve(self, log):
        return subprocess.Popen([*self._run, "tidings", "serve"], stdin=subprocess.DEVNULL,
                                stdout=log, stderr=log)

    def config(self):
        document = json.loads(output([*BUILDAH, "inspect", "--type", "image", IMAGE]))
        return document["Docker"]["config"]

    def remove(self):
        output([*BUILDAH, "rm", self.name])


def program_below(pid):
    """The pid of the `tidings` that runs somewhere below a process, or None."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):  # each thread has its own
        for child in map(int, children.read_text(encoding="ascii").split()):
            name = Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip()
            found = child if name == "tidings" else program_below(child)
            if found:
                return found
    return None


def test():
    """Runs the image as a deployment would; returns how many checks passed and failed."""
    main()
    directory = STORE / "test"
    shutil.rmtree(directory, ignore_errors=True)
    with Postgres(directory / "postgres") as postgres, Redis(directory / "redis") as redis:
        # Only its port and its question for readiness are used: the process is the container's.
        probe = Tidings(directory / "tidings", "tidings", {})
        container = Container({
            "TIDINGS_LISTEN": f"127.0.0.1:{probe.port}",
            "TIDINGS_DATABASE_URL": postgres.tcp_url,
            "TIDINGS_REDIS_URL": redis.url,
        })
        try:
            results = check_container(container, probe)
        finally:
            container.remove()
    postgres.wipe()
    for name, passed in results.items():
        print(f"{'passed' if passed else 'FAILED'}: {name}", flush=True)
    passed = sum(results.values())
    return passed, len(results) - passed


def has_page(probe, path):
    try:
        with urllib.request.urlopen(probe.url + path, timeout=10):
            return True
    except urllib.error.HTTPError:
        return False


def check_container(container, probe):
    results = {
        "the binary has the version": container.run("tidings", "--version") == (0, f"tidings {release.version()}"),
        "the label has the version": container.config()["Labels"]["org.opencontainers.image.version"] == release.version(),
        "migrate succeeds": container.run("tidings", "migrate")[0] == 0,
        "it does not run as root": container.run("id", "-u") == (0, "10001"),
        "it cannot write to its file system": container.run("touch", "/usr/local/bin/tidings")[0] != 0,
        "the health check fails while it is down": container.run("tidings", "check")[0] != 0,
        "the health check is the binary's own":
            container.config()["Healthcheck"]["Test"] == ["CMD", "tidings", "check"],
    }
    with open(probe.log, "wb") as log:
        server = container.serve(log)
        program = None
        try:
            wait_until(lambda: probe.ready() or server.poll() is not None, 120,
                       f"the container does not answer, see {probe.log}")
            program = program_below(server.pid)
            if program is None:
                raise Failure(f"the container exited:\n{probe.log_tail()}")
            results["it answers /readyz"] = probe.ready()
            results["it serves the API reference"] = has_page(probe, "/docs/redoc.standalone.js")
            results["the health check passes"] = container.run("tidings", "check")[0] == 0
            os.kill(program, signal.SIGTERM)
            results["it shuts down cleanly"] = server.wait(120) == 0
        finally:
            if server.poll() is None:
                os.kill(program or server.pid, signal.SIGKILL)  # buildah ends with its program
                server.wait()
    return results
