# SPDX-License-Identifier: Apache-2.0
"""Checks the models in tests/model with spin: each as it is, in which no assertion may fail, and with each of its
guards removed, in which one must. A model lists its guards at its top: "//   NO_GUARD  what is taken out"."""
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from tools.project import BUILD, ROOT

MODELS = ROOT / "tests" / "model"
WORK = BUILD / "model"
GUARD = re.compile(r"^//   (NO_[A-Z_]+) ", re.MULTILINE)
COMPILER = ["gcc", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=900", "-o", "pan", "pan.c"]
# A fault is found sooner than a faster search would be compiled; breadth first, so that its story is a short one.
FOR_FAULT, FOR_WHOLE = ["-O0", "-DBFS"], ["-O1"]
SEARCH = ["./pan", "-E", "-m100000"]  # no end of the model is wrong but what an assertion says
LATE = 30 * 60
# Lines of a replayed story that are not the model's own.
NOISE = re.compile(r"^\s*(spin:|#processes|\d+:\s+proc|\d+ processes created|\t)|\[\d+\]\.|^\t")


class Case:
    """One model, whole (guard None) or without one of its guards."""

    def __init__(self, model, guard):
        self.model = model
        self.guard = guard
        self.name = f"{model.stem}" + (f" {guard}" if guard else "")
        self.directory = WORK / self.name.replace(" ", "-")
        self.output = ""
        self.passed = False

    def options(self):
        """A fault needs fewer processes to show itself than all of what may happen."""
        return [f"-D{self.guard}", "-DONE_WORKER"] if self.guard else []

    def call(self, *argv):
        done = subprocess.run(argv, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LATE, check=False)
        self.output += done.stdout
        return done.stdout

    def story(self):
        """The steps up to the failed assertion, in the model's own words."""
        lines = self.call("spin", "-t", *self.options(), self.model.name).splitlines()
        return "\n".join(line.strip() for line in lines if line.strip() and not NOISE.search(line))

    def judge(self, found):
        failed = re.search(r"pan:\d+: assertion violated (.*) \(at depth", found)
        whole = "errors: 0" in found and not re.search("not completed|too small", found)
        self.passed = bool(failed) if self.guard else whole
        states = re.search(r"(\d+) states, stored", found)
        return failed, states.group(1) if states else "?"

    def run(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        for file in [self.model, *MODELS.glob("*.inc")]:
            shutil.copy(file, self.directory)
        try:
            self.call("spin", "-a", *self.options(), self.model.name)
            self.call(*COMPILER, *(FOR_FAULT if self.guard else FOR_WHOLE))
            failed, states = self.judge(self.call(*SEARCH))
            if failed:
                (WORK / f"{self.directory.name}.txt").write_text(
                    f"{self.story()}\nassertion violated: {failed.group(1)}\n", encoding="utf-8")
        except (OSError, subprocess.TimeoutExpired) as error:
            self.output += f"{error}\n"
            states = "?"
        shutil.rmtree(self.directory, ignore_errors=True)
        wanted = "an assertion fails" if self.guard else "all assertions hold"
        print(f"{self.name}: {wanted}: {'yes' if self.passed else 'NO'} ({states} states)", flush=True)
        if not self.passed:
            print(self.output, flush=True)
        return self.passed


def cases():
    for model in sorted(MODELS.glob("*.pml")):
        text = model.read_text(encoding="utf-8")
        for guard in [None, *GUARD.findall(text)]:
            yield Case(model, guard)


def run():
    """Returns how many passed and failed. The stories that spin found are in build/model/*.txt."""
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        results = list(pool.map(Case.run, cases()))
    return sum(results), len(results) - sum(results)
