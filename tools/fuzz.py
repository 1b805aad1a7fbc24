# SPDX-License-Identifier: Apache-2.0
"""./dev fuzz: libFuzzer on the parsers, with ASan and UBSan. Seeds are in tests/fuzz/seeds/<target>; findings go to
.run/fuzz/<target>, and the corpus grows in .run/fuzz/<target>/corpus."""
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from tools.project import ROOT, RUN, Failure, build

SOURCES = ROOT / "tests" / "fuzz"
SEEDS = SOURCES / "seeds"
FOUND = RUN / "fuzz"
AT_ONCE = 2
TEST_SECONDS = 2  # for each target, in ./dev test
OPTIONS = ("-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1")
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}


def targets():
    return sorted(path.stem.removeprefix("fuzz_") for path in SOURCES.glob("fuzz_*.c"))


def program(target):
    return ROOT / "build" / "fuzz" / "tests" / "fuzz" / f"fuzz_{target}"


def figures(output):
    """From libFuzzer's last lines: the number of inputs, and of edges of the code covered."""
    done = [line.split() for line in output.splitlines() if "DONE" in line and "cov:" in line]
    if not done:
        return "no figures"
    words = done[-1]
    return f"{words[0].lstrip('#')} executions, coverage {words[words.index('cov:') + 1]}"


def tell_found(target, output, before):
    """libFuzzer's report on the fault, and how to reproduce it."""
    print("\n".join(output.splitlines()[-40:]))
    for path in sorted(set((FOUND / target).glob("*-*")) - before):
        print(f"fuzz {target}: {path.relative_to(ROOT)}\n"
              f"  reproduce: {program(target).relative_to(ROOT)} {path.relative_to(ROOT)}\n"
              f"  when fixed: cp {path.relative_to(ROOT)} tests/fuzz/seeds/{target}/", flush=True)


def run_target(target, seconds, corpus):
    """Runs the seeds (and the corpus) first, then mutations of them. Returns whether all passed."""
    directory = FOUND / target
    corpus.mkdir(parents=True, exist_ok=True)
    directory.mkdir(parents=True, exist_ok=True)
    before = set(directory.glob("*-*"))
    done = subprocess.run(
        [program(target), *OPTIONS, f"-max_total_time={seconds}", f"-artifact_prefix={directory}/", corpus, SEEDS / target],
        env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8", errors="replace", check=False)
    print(f"fuzz {target}: {'' if done.returncode == 0 else 'FAILED, '}{figures(done.stdout)}", flush=True)
    if done.returncode != 0:
        tell_found(target, done.stdout, before)
    return done.returncode == 0


def run(chosen, seconds, corpus_of):
    build("fuzz", "fuzz")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda target: run_target(target, seconds, corpus_of(target)), chosen))


def test():
    """Every target for a moment, from the seeds alone. How many passed and failed."""
    scratch = FOUND / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    well = run(targets(), TEST_SECONDS, lambda target: scratch / target)
    shutil.rmtree(scratch, ignore_errors=True)
    return well.count(True), well.count(False)


def main(arguments):
    unknown = sorted(set(arguments.targets) - set(targets()))
    if unknown:
        raise Failure(f"no such target: {' '.join(unknown)}; there are {' '.join(targets())}")
    well = run(arguments.targets or targets(), 60 * arguments.minutes, lambda target: FOUND / target / "corpus")
    return 0 if all(well) else 1
