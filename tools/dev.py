# SPDX-License-Identifier: Apache-2.0
"""The commands of ./dev, which has installed their dependencies."""
import argparse
import os
import resource
import shutil
import signal
import sys
import textwrap
import time

from tools import demo, fuzz, image, lint, reference, testing
from tools.project import ROOT, RUN, SIGNALS, Failure, build, catch_signals, locked, process_identity
from tools.service import ServiceError, port_is_free, wait_until
from tools.stack import LOG, REDIS_PORTS, Stack

UP = RUN / "up"  # identity of the ./dev up that runs
OPEN_FILES = 1 << 20
PARTS = ("tidings", "postgres", "redis", *REDIS_PORTS, "kafka", "phones")

HELP = """\
./dev up [--kafka] [--push] [--redis-tls|--redis-sentinel] [--instances N] [--port P]
         [--release|--asan|--tsan]
                        build, start everything, serve until Ctrl-C; writes addresses and tokens to
                        .run/demo.json; passes TIDINGS_* settings on, except addresses;
                        --push: simulate the demo users' phones, with a page of their lock screens;
                        --redis-tls: encrypt connections to Redis;
                        --redis-sentinel: Redis with two replicas and three Sentinels
./dev stop              stop ./dev up from another shell
./dev status            show which parts run and respond
./dev restart PART      restart tidings, postgres, redis, kafka, phones, or one of several: redis-1,
                        sentinel-1, …; keeps the data
./dev reset             stop and delete all data
./dev test [GROUP...]   groups: {groups}
                        (default: all but long, clusters and image; quick: lint, unit, e2e and contract)
./dev fuzz [--minutes N] [TARGET...]
                        fuzz the parsers, N minutes each, two at a time; targets:
                        {targets}
./dev bench [--json FILE] [--rows A,B] [--quick]
                        measure performance against a floor from the same run; --help describes each row
./dev soak --minutes N [--faults] [--seed S]
                        mixed load on all parts, checked after each round; reports what grows over time
./dev fmt               format C code; update openapi/tidings-3.0.json and files that contain the version
./dev lint              format, layers, headers, sizes, banned functions, documents, release, migrations, API,
                        alert rules, Python names
./dev image             build the container image with buildah
"""


class Stopped(BaseException):
    """The user, or ./dev stop, wants an end."""


def ignore_signals():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def on_signal(*_):
    ignore_signals()  # the stop itself is not to be cut short
    raise Stopped


def say(text):
    """Prints, even if the terminal is gone."""
    try:
        print(text, flush=True)
    except OSError:
        pass


def running():
    """The pid of the ./dev up of this checkout, or None."""
    try:
        identity = UP.read_text(encoding="ascii")
        pid = int(identity.partition(" ")[0])
    except (OSError, ValueError):  # not there, or not whole yet
        return None
    return pid if process_identity(pid) == identity else None


def up(arguments):
    catch_signals(on_signal)
    refuse_second()  # at once: the lock is held for as long as the first one builds
    with locked():
        refuse_second()
        UP.write_text(process_identity(os.getpid()), encoding="ascii")
    stack = Stack()
    try:
        with locked():
            start(stack, arguments)
        serve(stack)
    except Stopped:
        say("\ndev: stopping")
    finally:
        ignore_signals()
        with locked():
            demo.withdraw()
            stack.stop()
            UP.unlink(missing_ok=True)
    say("dev: stopped")


def refuse_second():
    pid = running()
    if pid:
        raise Failure(f"already running (pid {pid}); stop it with ./dev stop")


def start(stack, arguments):
    demo.withdraw()
    stack.stop()  # what a killed ./dev up has left
    reference.bring()
    build(arguments.preset, "tidings")
    check_ports(arguments)
    stack.configure(arguments.preset, arguments.kafka, arguments.instances, arguments.port, arguments.push, arguments.redis)
    say("dev: starting " + ", ".join(service.name for service in stack.servers) + ", tidings")
    stack.start()
    written = demo.publish(stack)
    say(f"\n{demo.walkthrough(written)}")
    say(f"dev: serving on {' '.join(written['urls'])}; log {LOG.relative_to(ROOT)}, "
        "tokens .run/demo.json; Ctrl-C stops")


def check_ports(arguments):
    """Tidings shares its port among its loops: the kernel would not tell of a second program."""
    for port in range(arguments.port, arguments.port + arguments.instances):
        if not port_is_free(port):
            raise Failure(f"port {port} is in use, or you may not bind it; choose another with --port")


def serve(stack):
    """Waits for the end, and reaps children, so that no zombie seems to be a live process."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(1)  # all of them were started anew by another shell
            continue
        with locked():  # whom ./dev restart has ended is there again by now
            tell_ended(stack)


def tell_ended(stack):
    for service in [*stack.servers, *stack.instances]:
        if service.pid is None:
            say(f"dev: {service.name} (port {service.port}) has stopped, see {service.log.relative_to(ROOT)}; "
                f"./dev restart {service.name}")


def stop(_):
    pid = running()
    identity = pid and process_identity(pid)
    if identity:
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: process_identity(pid) != identity, 120, f"./dev up (pid {pid}) has not stopped")
    with locked():
        demo.withdraw()
        Stack().stop()
        UP.unlink(missing_ok=True)


def status(_):
    stack = Stack()
    well = True
    for service in [*stack.servers, *(stack.instances if stack.postgres.initialised else [])]:
        pid = service.pid
        answers = pid is not None and service.ready()
        well = well and answers
        word = "answers" if answers else "does not answer" if pid else "is not running"
        say(f"{service.name:10} port {service.port:<6} pid {pid or '-':<8} {word}")
    return 0 if well else 1


def restart(arguments):
    with locked():
        if not demo.DEMO.exists():
            raise Failure("nothing is running: ./dev up")
        stack = Stack()
        for service in stack.part(arguments.part):
            service.restart()
        demo.publish(stack)


def reset(arguments):
    stop(arguments)
    with locked():
        stack = Stack()
        for service in (stack.kafka, *stack.redis.services, stack.postgres):
            service.wipe()
        for path in RUN.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()


def bench(arguments):
    build("release")
    program = str(ROOT / "bench" / "run.py")
    os.execv(sys.executable, [sys.executable, program, *arguments.options])


def soak(arguments):
    python = testing.python()
    build("release", "tidings")
    os.execv(python, [str(python), "-m", "tests.soak", *arguments.options])


def whole_number(low, high):
    """A type for argparse, whose own `choices` would print every number there is."""
    def read(text):
        if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from {low} to {high}")
        return int(text)
    return read


def targets():
    return textwrap.fill(" ".join(fuzz.targets()), 90, subsequent_indent=" " * 24)


def parse(argv):
    parser = argparse.ArgumentParser(prog="./dev", add_help=False)
    commands = parser.add_subparsers(dest="command")
    upper = commands.add_parser("up", allow_abbrev=False)  # ./dev looks for --kafka, --push and --redis-tls
    upper.add_argument("--kafka", action="store_true")
    upper.add_argument("--push", action="store_true")
    kinds = upper.add_mutually_exclusive_group()
    for kind in ("tls", "sentinel"):
        kinds.add_argument(f"--redis-{kind}", dest="redis", action="store_const", const=kind, default="plain")
    upper.add_argument("--instances", type=whole_number(1, 16), default=1, metavar="N")
    upper.add_argument("--port", type=whole_number(1, 65519), default=8080, metavar="P")
    presets = upper.add_mutually_exclusive_group()
    for preset in ("release", "asan", "tsan"):
        presets.add_argument(f"--{preset}", dest="preset", action="store_const", const=preset)
    upper.set_defaults(run=up, preset="dev")
    for name, function in (("stop", stop), ("status", status), ("reset", reset),
                           ("fmt", lint.fmt), ("lint", lint.main), ("image", image.main)):
        commands.add_parser(name).set_defaults(run=function)
    restarter = commands.add_parser("restart")
    restarter.add_argument("part", choices=PARTS)
    restarter.set_defaults(run=restart)
    tester = commands.add_parser("test")
    tester.add_argument("groups", nargs="*", metavar="GROUP")
    tester.set_defaults(run=testing.main)
    fuzzer = commands.add_parser("fuzz")
    fuzzer.add_argument("--minutes", type=whole_number(1, 10000), default=3, metavar="N")
    fuzzer.add_argument("targets", nargs="*", metavar="TARGET")
    fuzzer.set_defaults(run=fuzz.main)
    commands.add_parser("bench")
    commands.add_parser("soak")
    if not argv or argv[0] not in commands.choices:
        say(HELP.format(groups=" ".join(testing.GROUPS), targets=targets()))
        sys.exit(0 if argv in ([], ["help"], ["-h"], ["--help"]) else 2)
    if argv[0] in ("bench", "soak"):  # which read their own options
        return argparse.Namespace(command=argv[0], run={"bench": bench, "soak": soak}[argv[0]], options=argv[1:])
    return parser.parse_args(argv)


def allow_many_sockets():
    """Raises the soft limit of open files, for Tidings and the load programs alike."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if 0 <= hard < OPEN_FILES else OPEN_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main(argv):
    arguments = parse(argv)
    allow_many_sockets()
    try:
        return arguments.run(arguments) or 0
    except (Failure, ServiceError) as failure:
        print(f"dev: {failure}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, Stopped):
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
