#!/usr/bin/env python3
"""Measures the tables of docs/benchmarks.md, "Matching" and "Many requests", on this machine and prints them.

    docs/matching.py TRACE... [--program target/release/avsg] [--runs 3]

Every figure is the median over the runs; a time of a batch is the first decile of its steps. The contenders of a run take turns, so a ratio holds on a loaded machine, and a time
does not. A machine that the CPU lacks is left out.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess

MACHINES = ["avx512", "avx2", "neon"]
RULE = ["--lifetime", "constant:127"]
BATCHES = [1, 8, 64]


def bench(program, trace, *options):
    """The rows of `avsg bench match`, or none if the CPU lacks the machine."""
    command = [program, "bench", "match", trace, *RULE, *options, "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and "this CPU has" in done.stderr:
        return []
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)["rows"]


def median(rows, value):
    return statistics.median(value(row) for row in rows)


def single(program, traces, runs):
    """The medians for one request: for each machine, K and S a list over the traces of (us, ratios)."""
    cells = {}
    for machine in MACHINES:
        for trace in traces:
            rows = [
                row for _ in range(runs)
                for row in bench(program, trace, "--table", "wide", "--k", "256,2048", "--slots", "2048,8192",
                                 "--machine", machine)
            ]
            for shape in sorted({(row["k"], row["slots"]) for row in rows}):
                of = [row for row in rows if (row["k"], row["slots"]) == shape]
                ratios = [median(of, lambda row: row[name] / row["median_us"]) for name in ("scalar_us", "dual_pointer_us")]
                cells.setdefault((machine, *shape), []).append((median(of, lambda row: row["median_us"]), *ratios))
    return cells


def batches(program, traces, runs):
    """For each B a list over the traces of (us per request, ratio to lru_resident_compact)."""
    cells = {}
    for requests in BATCHES:
        for trace in traces:
            own = [
                bench(program, trace, "--k", "2048", "--slots", "8192", "--requests", str(requests), "--threads", "1",
                      "--steps", "200")[1]
                for _ in range(runs)
            ]
            us = median(own, lambda row: row["first_decile_us"]) / requests
            cells.setdefault(requests, []).append((us, median(own, lambda row: row["first_decile_ratio"])))
    return cells


def line(*cells):
    print("| " + " | ".join(map(str, cells)) + " |")


def head(*cells):
    line(*cells)
    line(*["---"] * len(cells))


def spread(values):
    """The geometric mean and the worst."""
    return f"{math.exp(statistics.fmean(map(math.log, values))):.2f} ({min(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--program", default=pathlib.Path(__file__).resolve().parent.parent / "target/release/avsg")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    arguments = (options.program, options.traces, options.runs)
    head("machine", "K", "S", "us on each trace", "scalar table, mean (worst)", "sort and merge, mean (worst)")
    for (machine, k, slots), cells in single(*arguments).items():
        us, scalar, pointers = zip(*cells)
        line(machine, k, slots, " / ".join(f"{t:.2f}" for t in us), spread(scalar), spread(pointers))
    print()
    head("B", "us for a request, on each trace", "lru_resident_compact, mean (worst)")
    for requests, cells in batches(*arguments).items():
        us, ratio = zip(*cells)
        line(requests, " / ".join(f"{t:.1f}" for t in us), spread(ratio))


if __name__ == "__main__":
    main()
