#!/usr/bin/env python3
"""Draws mutants of device/, linker/, host/ and bindings/c/ with a seed and reports which tests of the default tier kill them.

    cargo install cargo-mutants --locked        # lists the mutants, which this script applies and tests
    tests/mutants.py --seed 1 --count 40        # a quarter of an hour, then a minute or two per mutant
    tests/mutants.py --seed 1 --count 40 --thorough

With --thorough, a mutant that survives the default tier is tested with AVSG_THOROUGH=1 as well. A mutant that only
the thorough tier kills is a gap of the default tier and makes the exit status 1. Mutants are applied in a copy of the
committed tree below target/mutants, after every stage of tests has passed there without a mutant.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "target" / "mutants" / "tree"
PACKAGES = ["avsg-device", "avsg-linker", "avsg", "avsg-capi"]
# Code that other processors run, debug output, and generated bindings.
SKIPPED = ["/neon.rs", "fmt::Debug", "acl/sys.rs"]
SKIPPED += [] if "avx512f" in Path("/proc/cpuinfo").read_text() else ["/avx512.rs"]

# Arguments of `cargo test` per package, with the quick tests first. The first stage that fails kills the mutant.
STAGES = {
    "avsg-device": ["-p avsg-device", "-p avsg-linker", "-p avsg", "-p avsg-cli", "-p avsg-capi"],
    "avsg-linker": [
        "-p avsg-linker --lib --test tape",
        "-p avsg --test engine goldens",
        "-p avsg-linker",
        "-p avsg-cli",
        "-p avsg",
    ],
    "avsg": [
        "-p avsg --lib --test engine",
        "-p avsg",
        "-p avsg-capi",
        "-p avsg-cli",
    ],
    "avsg-capi": ["-p avsg-capi"],
}


def run(command, seconds, **env):
    """Returns the exit status of a command in the copy, or None if it did not end in time."""
    # Cargo takes the copy and the tree for one workspace, so a shared target folder would give mutated code to the tree.
    env = {**os.environ, "CARGO_TARGET_DIR": str(COPY / "target"), **env}
    child = subprocess.Popen(
        command, shell=True, cwd=COPY, env=env, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.wait()
        return None


def draw_mutants(seed, count):
    """Returns the mutants of each package in an order that the seed determines."""
    listed = subprocess.run(
        ["cargo", "mutants", "--list", "--json", "--diff"] + [f"--package={p}" for p in PACKAGES],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    all_mutants = [m for m in json.loads(listed) if not any(word in m["file"] + m["name"] for word in SKIPPED)]
    rng = random.Random(seed)
    drawn = {p: [m for m in all_mutants if m["package"] == p] for p in PACKAGES}
    for package_mutants in drawn.values():
        rng.shuffle(package_mutants)
    print(f"{len(all_mutants)} mutants, {count} drawn with seed {seed}", flush=True)
    return drawn


def time_stages(packages, **env):
    """Returns the seconds that each stage takes on the unmutated tree, where every stage must pass."""
    seconds = {}
    for stage in dict.fromkeys(stage for package in packages for stage in STAGES[package]):
        began = time.time()
        status = run(f"cargo test {stage}", 7200, **env)
        if status != 0:
            sys.exit(f"`cargo test {stage}` fails without a mutant (exit status {status}), so it can kill none: mend it or the stage")
        seconds[stage] = time.time() - began
        print(f"{seconds[stage]:6.0f} s  without a mutant: {stage}", flush=True)
    return seconds


def killed_by(mutant, seconds, **env):
    """Returns the stage that kills the applied mutant, or None if all stages pass.

    A stage that takes four times as long as without a mutant, and ten minutes to compile, has met an endless loop."""
    for stage in STAGES[mutant["package"]]:
        if run(f"cargo test {stage}", 600 + 4 * seconds[stage], **env) != 0:
            return stage
    return None


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=40)
    options.add_argument("--thorough", action="store_true")
    options = options.parse_args()
    drawn = draw_mutants(options.seed, options.count)
    if not COPY.exists():
        subprocess.run(["git", "worktree", "add", "--detach", COPY], cwd=ROOT, check=True)
    subprocess.run(["git", "checkout", "--force", "--detach",
                    subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()],
                   cwd=COPY, check=True, capture_output=True)
    assert run("cargo test --workspace --no-run", 3600) == 0, "the committed tree does not build"
    packages = PACKAGES[:options.count]
    seconds = time_stages(packages)
    thorough_seconds = time_stages(packages, AVSG_THOROUGH="1") if options.thorough else {}
    gaps = done = 0
    while done < options.count:
        package = PACKAGES[done % len(PACKAGES)]
        mutant = drawn[package].pop()
        patch = subprocess.run(["patch", "--forward", mutant["file"]], cwd=COPY, input=mutant["diff"],
                               text=True, capture_output=True)
        assert patch.returncode == 0, patch.stdout
        began = time.time()
        # A mutant that does not compile is not counted.
        if run(f"cargo check -p {package}", 900) == 0:
            stage = killed_by(mutant, seconds)
            verdict = f"killed by {stage}" if stage else "survived"
            if stage is None and options.thorough and (
                    stage := killed_by(mutant, thorough_seconds, AVSG_THOROUGH="1")):
                verdict, gaps = f"GAP: killed only by AVSG_THOROUGH=1 {stage}", gaps + 1
            done += 1
            print(f"{done:3} {time.time() - began:4.0f} s  {mutant['name']}\n      {verdict}", flush=True)
        subprocess.run(["git", "checkout", "--force", "."], cwd=COPY, check=True, capture_output=True)
    print(f"{gaps} gaps of the default tier")
    sys.exit(1 if gaps else 0)


if __name__ == "__main__":
    main()
