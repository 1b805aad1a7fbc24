# SPDX-License-Identifier: Apache-2.0
"""Private servers for development and tests: Postgres, Redis, Kafka and Tidings itself.

    postgres = Postgres(directory / "postgres")
    postgres.start()                      # returns when it answers
    tidings = Tidings(directory / "t0", "build/release/tidings",
                      {"TIDINGS_DATABASE_URL": postgres.url, "TIDINGS_REDIS_URL": redis.url})
    tidings.migrate(); tidings.start()
    postgres.kill(signal.SIGKILL)         # all of its processes, at once
    postgres.restart()                    # dead, stopped or partly dead: same data, same port
    tidings.stop(); postgres.stop(); postgres.wipe()

Each service owns its directory, listens on 127.0.0.1 (Postgres on a Unix socket too)
and keeps its port for as long as the object lives. Children run in sessions of their own, so that
a Ctrl-C at the terminal reaches only the caller, who stops them in order.

A process belongs to a service when it runs the service's program *in the service's directory*
(/proc/PID/cwd): this finds processes left behind by a killed caller, and no others are ever
signalled. There is no state in memory that another process would need: any process may create an
object for the same directory and port, and stop or restart a service that another one started.
"""
import hashlib
import http.client
import os
import pwd
import secrets
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import urllib.parse
from pathlib import Path

from tools import maven
from tools.certificates import HERE, Authority
from tools.service import Service, ServiceError, free_port, port_is_free, wait_until

__all__ = ["Kafka", "Postgres", "Redis", "ServiceError", "Tidings", "TlsRedis", "fetch_kafka",
           "free_port", "port_is_free", "sanitizer_prefix", "wait_until"]

ROOT = Path(__file__).resolve().parent.parent
POSTGRES_BIN = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda directory: int(directory.parent.name) if (directory / "postgres").exists() else 0,
                   default=Path("/usr/lib/postgresql/bin"))  # of the newest server
REDIS = os.environ.get("TIDINGS_DEV_REDIS", "redis")  # or valkey, whose programs are named alike
KAFKA_JARS = ROOT / "build" / "kafka"
SOCKET_PATH_MAX = 107


class Postgres(Service):
    """Postgres with a password of its own. `url` is by Unix socket (the fastest), `tcp_url` the
    same by 127.0.0.1. `settings` go on top of SETTINGS, `environment` on top of the caller's."""

    name = "postgres"
    programs = ("postgres",)
    stop_signal = signal.SIGINT  # "fast shutdown": ends sessions, then a checkpoint
    SETTINGS = {
        "listen_addresses": "127.0.0.1",
        "shared_buffers": "256MB",
        "max_wal_size": "2GB",
        "max_connections": "1000",  # an instance takes 12 a loop and some more, and has a loop for each two cores
        "wal_compression": "off",
        "jit": "off",
    }

    def __init__(self, directory, port=None, log=None, settings=None):
        super().__init__(directory, port, log)
        self.settings = {**self.SETTINGS, **(settings or {})}
        self.environment = {}
        self.home = self._home()
        self.socket_directory = self.home / "socket"

    def user(self):
        """Postgres refuses to run as root: there it runs as the user that its package made."""
        return pwd.getpwnam("postgres") if os.geteuid() == 0 else None

    def run_directory(self):
        return self.home / "data"

    def _home(self):
        """The given directory, or, where its user cannot get there (below /root, say) or a socket
        path would be too long, one under /var/tmp that is always the same for it."""
        name_length = len(f"{self.directory}/socket/.s.PGSQL.{self.port}.lock")
        if name_length <= SOCKET_PATH_MAX and self._reachable():
            return self.directory
        digest = hashlib.sha256(str(self.directory).encode()).hexdigest()[:16]
        home = Path(f"/var/tmp/tidings-{os.geteuid()}-{digest}")
        home.mkdir(mode=0o711, exist_ok=True)
        if home.is_symlink() or home.stat().st_uid != os.geteuid():
            raise ServiceError(f"{home} belongs to another user")
        return home

    def _reachable(self):
        user = self.user()
        if user is None:
            return True
        return subprocess.run(["test", "-x", self.directory], user=user.pw_uid, cwd="/",
                              group=user.pw_gid, extra_groups=[], check=False).returncode == 0

    @property
    def initialised(self):
        """Whether it has been started before, and so has a password and data."""
        return (self.home / "data").exists()

    def prepare(self):
        if self.initialised:
            self._refuse_other_version()
            # Nothing of it runs, but a zombie that nobody has buried yet would look alive to it.
            for lock in (self.run_directory() / "postmaster.pid",
                         *self.socket_directory.glob("*.lock")):
                lock.unlink(missing_ok=True)
            return
        self._give(self.home / "socket", directory=True)
        password = self.home / "password"
        self._give(password)
        password.write_text(secrets.token_hex(16) + "\n", encoding="ascii")
        unfinished = self.home / "unfinished"  # so that "data" is whole, or is not there
        shutil.rmtree(unfinished, ignore_errors=True)
        self._give(unfinished, directory=True)
        self._run([POSTGRES_BIN / "initdb", "--pgdata", unfinished, "--username=tidings",
                   "--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8",
                   "--locale=C.UTF-8", "--no-instructions", "--no-sync"])
        unfinished.rename(self.home / "data")

    def _refuse_other_version(self):
        made_by = (self.home / "data" / "PG_VERSION").read_text(encoding="ascii").strip()
        if made_by != POSTGRES_BIN.parent.name:
            raise ServiceError(f"{self.home}/data was made by Postgres {made_by}, and the newest here is {POSTGRES_BIN.parent.name}: "
                               "install the older one, or delete the data (./dev reset)")

    def _give(self, path, directory=False):
        """Makes an empty file or directory that only the server's user can use."""
        if directory:
            path.mkdir(mode=0o700, exist_ok=True)
        else:
            path.touch(mode=0o600)
        if self.user() is not None:
            os.chown(path, self.user().pw_uid, self.user().pw_gid)

    def _run(self, argv):
        user = self.user()
        identity = {}
        if user is not None:
            identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        done = subprocess.run(argv, cwd=self.home, stdin=subprocess.DEVNULL, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **identity)
        if done.returncode != 0:
            raise ServiceError(f"{argv[0]}: {done.stdout.decode(errors='replace')}")

    def command(self):
        options = {**self.settings, "port": self.port,
                   "unix_socket_directories": self.socket_directory}
        argv = [POSTGRES_BIN / "postgres", "-D", self.home / "data"]
        for key, value in options.items():
            argv += ["-c", f"{key}={value}"]
        return argv, dict(os.environ, LC_ALL="C.UTF-8", **self.environment)

    def start(self, wait=True, timeout=None):
        super().start(wait, timeout)
        made = self.directory / "database-made"
        if wait and not made.exists():
            self.create_database("tidings")
            made.touch()

    def ready(self):
        return subprocess.run(
            [POSTGRES_BIN / "pg_isready", "-q", "-t", "1", "-h", self.socket_directory,
             "-p", str(self.port)], check=False).returncode == 0

    @property
    def password(self):
        return (self.home / "password").read_text(encoding="ascii").strip()

    @property
    def url(self):
        return self.database_url("tidings")

    @property
    def tcp_url(self):
        return f"postgres://tidings:{self.password}@127.0.0.1:{self.port}/tidings"

    def database_url(self, database):
        """URL of another database of this server (see create_database)."""
        host = urllib.parse.quote(str(self.socket_directory), safe="")
        return f"postgres://tidings:{self.password}@{host}:{self.port}/{database}"

    def create_database(self, database):
        """Makes a database, unless it is there, and returns its URL. Milliseconds: cheaper than a
        server of its own for a test that only needs empty tables."""
        if self.sql(f"SELECT 1 FROM pg_database WHERE datname = '{database}'", "postgres") == "":
            self.sql(f'CREATE DATABASE "{database}"', "postgres")
        return self.database_url(database)

    def sql(self, statement, database="tidings"):
        """Runs SQL by psql; returns the rows as text: columns by "|", rows by newline."""
        done = subprocess.run(
            [POSTGRES_BIN / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", statement,
             self.database_url(database)],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceError(f"psql: {done.stderr.strip()}")
        return done.stdout.rstrip("\n")


class Redis(Service):
    """Redis, or Valkey, with an append-only file, synced every second; never evicts. `options` are
    configuration directives on top of OPTIONS."""

    name = "redis"
    programs = (f"{REDIS}-server", f"{REDIS}-check-rdb")  # Debian's server is a link to the latter
    OPTIONS = {
        "bind": "127.0.0.1",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }

    def __init__(self, directory, port=None, log=None, options=None):
        super().__init__(directory, port, log)
        self.options = {**self.OPTIONS, **(options or {})}

    @property
    def services(self):
        """All servers that it consists of."""
        return [self]

    def port_options(self):
        return {"port": str(self.port)}

    def command(self):
        argv = [f"{REDIS}-server"]
        for key, value in {**self.port_options(), "dir": str(self.home), **self.options}.items():
            argv += [f"--{key}", value]
        return argv, dict(os.environ)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=1)

    def ready(self):
        try:
            with self.connect() as link:
                link.sendall(b"PING\r\n")
                return link.recv(64).startswith(b"+PONG")  # not -LOADING
        except OSError:
            return False

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def cli_argv(self, *arguments):
        return [f"{REDIS}-cli", "-p", str(self.port), *map(str, arguments)]

    def cli(self, *arguments):
        """Runs one command and returns its output."""
        argv = self.cli_argv(*arguments)
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceError(f"{argv[0]}: {done.stdout}{done.stderr}")
        return done.stdout.rstrip("\n")

    def wipe_data(self):
        """Deletes its data, so that the next start is an empty Redis. It must be stopped."""
        if self.pids():
            raise ServiceError("redis is still running")
        shutil.rmtree(self.home / "appendonlydir", ignore_errors=True)
        (self.home / "dump.rdb").unlink(missing_ok=True)


class TlsRedis(Redis):
    """Redis with TLS only, by an authority of its own. `names`: for whom its certificate is; `clients`: whether they need one, too."""

    def __init__(self, directory, port=None, log=None, options=None, names=HERE, clients=False):
        super().__init__(directory, port, log, options)
        self.names, self.clients = names, clients
        self.authority = None

    def prepare(self):
        self.authority = Authority(self.directory / "certificates")

    def port_options(self):
        certificate, key = self.authority.issue("redis", self.names)
        return {"port": "0", "tls-port": str(self.port), "tls-cert-file": str(certificate), "tls-key-file": str(key),
                "tls-ca-cert-file": str(self.cacert), "tls-auth-clients": "yes" if self.clients else "no"}

    @property
    def cacert(self):
        return self.directory / "certificates" / "ca.crt"

    def client_certificate(self):
        return Authority(self.directory / "certificates").issue("client")

    def connect(self):
        context = ssl.create_default_context(cafile=self.cacert)
        context.check_hostname = False
        if self.clients:
            context.load_cert_chain(*self.client_certificate())
        return context.wrap_socket(super().connect())

    @property
    def url(self):
        url = f"rediss://127.0.0.1:{self.port}?cacert={urllib.parse.quote(str(self.cacert))}"
        if not self.clients:
            return url
        certificate, key = map(str, self.client_certificate())
        return f"{url}&cert={urllib.parse.quote(certificate)}&key={urllib.parse.quote(key)}"

    def cli_argv(self, *arguments):
        own = ["--cert", self.client_certificate()[0], "--key", self.client_certificate()[1]] if self.clients else []
        return super().cli_argv("--tls", "--cacert", self.cacert, *own, *arguments)


class Kafka(Service):
    """Apache Kafka 3.9, one KRaft node in a 256 MB JVM; 8 partitions for a new topic. The jars are
    fetched once by Maven into build/kafka."""

    name = "kafka"
    programs = ("java",)
    start_timeout = 120
    JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    SETTINGS = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "num.partitions": "8",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        # A broker killed -9 may register again once its session is over: 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }

    def __init__(self, directory, port=None, log=None, controller_port=None):
        super().__init__(directory, port, log)
        self.controller_port = controller_port or free_port()

    @property
    def brokers(self):
        return f"127.0.0.1:{self.port}"

    def prepare(self):
        fetch_kafka()
        self._write_settings()
        if (self.home / "data" / "meta.properties").exists():
            return
        cluster = "T" + secrets.token_urlsafe(16)[1:]  # must not begin with "-"
        argv, environment = self._java("kafka.tools.StorageTool", "format", "--ignore-formatted",
                                       "-t", cluster, "-c", self.home / "server.properties")
        done = subprocess.run(argv, env=environment, cwd=self.home, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            raise ServiceError(f"kafka format: {done.stdout.decode(errors='replace')}")

    def wipe_data(self):
        """Deletes all topics and offsets, so that the next start is an empty Kafka. It must be stopped."""
        if self.pids():
            raise ServiceError("kafka is still running")
        shutil.rmtree(self.home / "data")

    def _write_settings(self):
        settings = {
            **self.SETTINGS,
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},"
                         f"CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.home / "data"),
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self.home / "server.properties").write_text(text, encoding="utf-8")

    def _java(self, *arguments):
        logging = ROOT / "tools" / "kafka" / "log4j.properties"
        return ([*self.JAVA, f"-Dlog4j.configuration=file:{logging}", "-cp", f"{KAFKA_JARS}/*",
                 *arguments], dict(os.environ))

    def command(self):
        return self._java("kafka.Kafka", self.home / "server.properties")

    def ready(self):
        """Asks for metadata (version 0): ready once the node lists itself among the brokers."""
        body = struct.pack(">hhih", 3, 0, 1, -1) + struct.pack(">i", 0)
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as link:
                link.sendall(struct.pack(">i", len(body)) + body)
                reply = link.recv(12, socket.MSG_WAITALL)
        except OSError:
            return False
        return len(reply) == 12 and struct.unpack(">iii", reply)[2] > 0


def fetch_kafka():
    """Brings Kafka's jars, pinned by tools/kafka/pom.xml, into build/kafka unless they are there."""
    maven.fetch(ROOT / "tools" / "kafka" / "pom.xml", KAFKA_JARS)


class Tidings(Service):
    """One instance of `tidings serve`. environment holds its TIDINGS_* settings; those of the
    caller's own environment are not passed on. TIDINGS_LISTEN is set from the port."""

    name = "tidings"
    programs = ("tidings",)
    SANITIZERS = {
        "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:"
                        f"suppressions={ROOT}/cmake/tsan.suppressions",
    }

    def __init__(self, directory, binary, environment, port=None, log=None):
        super().__init__(directory, port, log)
        self.binary = Path(binary).resolve()
        self.environment = dict(environment)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def full_environment(self):
        inherited = {key: value for key, value in os.environ.items()
                     if not key.startswith("TIDINGS_")}
        return {**self.SANITIZERS, **inherited, "TIDINGS_LISTEN": f"127.0.0.1:{self.port}",
                **self.environment}

    def command(self):
        return [*sanitizer_prefix(self.binary), self.binary, "serve"], self.full_environment()

    def migrate(self):
        self.run("migrate")

    def run(self, *arguments):
        """Runs `tidings ARGUMENTS` with this instance's settings and returns its output."""
        done = subprocess.run([*sanitizer_prefix(self.binary), self.binary, *arguments],
                              env=self.full_environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServiceError(f"tidings {arguments[0]} exited with status {done.returncode}:\n"
                               f"{done.stdout}{done.stderr}")
        return done.stdout

    def ready(self):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            link.request("GET", "/readyz")
            return link.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            link.close()


def sanitizer_prefix(binary):
    """The command that must precede a program built with TSan: gcc 12's runtime does not work with the address randomisation of newer
    kernels."""
    if "tsan" not in Path(binary).parts:
        return []
    bits = Path("/proc/sys/vm/mmap_rnd_bits")
    try:
        many = int(bits.read_text(encoding="ascii")) > 28
    except (OSError, ValueError):
        many = False
    return ["setarch", "-R"] if many else []
