#!/usr/bin/env python3
"""Writes the tables in docs/ and research/ that do not depend on the machine.

    docs/figures.py            runs the commands and rewrites the tables
    docs/figures.py --check    fails if a table differs from what its command says now

A table stands between the lines `<!-- figures: NAME -->` and `<!-- end -->`. `research/docs/paper-results.md` is the whole output of one command.
"""

import functools
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def output(*arguments, program="avsg-cli"):
    """The standard output of a subcommand."""
    command = ["cargo", "run", "--release", "--locked", "--quiet", "-p", program, "--", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout


@functools.cache
def research(*arguments):
    """The JSON output of a subcommand of avsg-research."""
    return json.loads(output(*arguments, "--json", "-", program="avsg-research"))


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def goal():
    """Stage One in relation to the modelled paper kernel over all ranges, for one request and for a full batch."""
    heads = ["requests", "part", "AVSG, us", "paper's kernel, us", "AVSG / paper", "smallest", "largest", "goal 0.5"]
    return table(heads, [
        [n, g["of"], f"{g['value']['ours_us']:.1f}", f"{g['value']['paper_us']:.1f}",
         *(f"{g[which]['ratio']:.2f}" for which in ("value", "smallest", "largest")), "met" if g["met"] else "missed"]
        for n in ("1", "40") for g in research("estimate", "--requests", n)["goals"]
    ])


def ranges():
    """Stage One in relation to the modelled paper kernel at both ends of each range."""
    one, full = ({r["constant"]: r for r in research("estimate", "--requests", n)["ranges"]} for n in ("1", "40"))
    heads = ["constant", "range", "1 request, low end", "1 request, high end", "40 requests, low end",
             "40 requests, high end"]

    def cells(rows, name):
        return [f"{rows[name][end]['ratio']:.2f}" if name in rows else "-" for end in ("low", "high")]

    return table(heads, [
        [name, f"{r['range'][0]:g} to {r['range'][1]:g} {r['unit']}", *cells(one, name), *cells(full, name)]
        for name, r in one.items()
    ])


def pipes():
    """What each pipe does in Stage One, in percent of its time, for one request and for a full batch."""
    one, full = (research("estimate", "--requests", n)["pipes"] for n in ("1", "40"))
    heads = ["kernel", "pipe", "at work, 1 request", "at work, 40 requests"]
    return table(heads, [
        [a["kernel"], a["pipe"], f"{a['work_percent']:.0f}", f"{b['work_percent']:.0f}"] for a, b in zip(one, full)
    ])


def code():
    """The code of the kernels, and Stage One with several prices of its fetches."""
    rows = research("estimate", "--requests", "1")["code"]
    heads = ["kernel", "code, bytes", "of it per token", "lines fetched", "calls", "free, us", "low, us", "value, us", "high, us"]
    return table(heads, [
        [r["kernel"], r["bytes"], r["token_bytes"] or "", *(f"{r[n]:.0f}" for n in ("lines", "calls")),
         *(f"{us:.1f}" for us in (r["free_us"], *r["us"]))]
        for r in rows
    ])


def variants():
    """What the optimisations save."""
    rows = research("estimate", "--requests", "1")["variants"]
    return table(["variant", "Stage One, us", "saved by what is missing, us"],
                 [[v["variant"], f"{v['stage_one_us']:.1f}", f"{v['saves_us']:.1f}"] for v in rows])


def stated():
    """The paper's measured figures beside the model."""
    def us(value):
        return "" if value is None else f"{value:.1f}"
    rows = research("estimate", "--requests", "1")["points"]
    return table(["figure", "K", "S", "the paper measured, us", "the model says, us", "error", "AVSG by the model, us"], [
        [p["what"], p["k"], p["slots"], us(p["paper_us"]), us(p["model_us"]), f"{p['error_percent']:+.0f} %",
         us(p.get("ours_us"))]
        for p in rows
    ])


def lifetime():
    """Hit rates of the committed trace by table and rule."""
    trace, sizes = "tests/data/nomicon-4k-k256.npz", (256, 512, 1024)
    answer = research("lifetime", trace, "--slots", ",".join(map(str, sizes)))
    wanted = [
        ("`paper`, L = 16", "paper", "constant:16"),
        ("`wide`, constant", "wide", "constant:127"),
        ("`wide`, learned", "wide", "learned"),
    ]
    bounds = [("exact LRU", "lru"), ("Belady's optimum", "opt")]

    def rate(slots, kind, rule):
        key = (slots, kind, rule)
        rates = [r["hit_rate"] for r in answer["rows"] if (r["slots"], r["table"], r["lifetime"]) == key]
        if len(rates) != 1:
            raise SystemExit(f"{len(rates)} rows are {key}")
        return f"{rates[0]:.2f}"

    lines = [[name, *(rate(s, *which) for s in sizes)] for name, *which in wanted]
    lines += [[name, *(f"{s[key]:.2f}" for s in answer["scale"])] for name, key in bounds]
    return table(["policy", *(f"S = {s}" for s in sizes)], lines)


def learned():
    """Hit rates of learned lifetimes beside exact LRU and the optimum."""
    trace = "tests/data/nomicon-4k-k256.npz"
    runs = [("committed trace, K = 256", trace, "--slots", "512,1024"), ("synthetic, K = 2048", "--slots", "4096,8192")]
    lines = []
    for name, *arguments in runs:
        answer = research("lifetime", *arguments)
        rates = {(r["slots"], r["table"], r["lifetime"]): r["hit_rate"] for r in answer["rows"]}
        for scale in answer["scale"]:
            slots = scale["slots"]
            values = scale["lru"], *(rates[slots, "wide", rule] for rule in ("constant:127", "learned")), scale["opt"]
            lines.append([name, slots, *(f"{value:.2f}" for value in values)])
    return table(["ids", "S", "exact LRU", "`wide`, constant", "`wide`, learned", "Belady's optimum"], lines)


def reuse():
    """The paper's synthetic workload: the table `paper` beside its figures, and `wide` beside `paper` and exact LRU."""
    answer = research("reuse")
    other = research("reuse", "--primes", "7919,17")

    def mean(slots, difference):
        values = [difference(row) for row in answer["rows"] if row["slots"] == slots]
        return f"{sum(values) / len(values):.1f}"

    far = max(abs(row["wide_constant"] - row["lru"]) for row in answer["rows"])
    return table(["difference in percentage points", "value"], [
        ["`paper` and the paper's 18 figures, root mean square", f"{answer['rms']:.2f}"],
        ["the same with `--primes 7919,17`", f"{other['rms']:.2f}"],
        *([f"`wide` with constant lifetimes above `paper`, mean at S = {slots}",
           mean(slots, lambda row: row["wide_constant"] - row["paper"])] for slots in (4096, 8192)),
        ["`wide` with constant lifetimes and exact LRU, largest", f"{far:.2f}"],
    ])


def printed(*arguments, **options):
    """The table that a command prints for the committed trace."""
    text = output(*arguments, "tests/data/nomicon-4k-k256.npz", **options)
    lines = (line for line in text.splitlines(keepends=True) if line.startswith("|"))
    return "".join(re.sub("-{3,}", "---", re.sub(" {2,}", " ", line)) for line in lines)


def policies():
    """Hit rates by rule."""
    return printed("compare")


def contenders():
    """Hit rates of policies that AVSG does not have."""
    return printed("contenders", program="avsg-research")


# Pages that a command writes as a whole.
PAGES = {"paper-results.md": ("paper", "tests/data/nomicon-4k-k256.npz")}
TABLES = {f.__name__: f for f in (goal, pipes, ranges, code, variants, stated, lifetime, learned, reuse, policies, contenders)}


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        raise SystemExit(f"argument is {sys.argv[1]}, but the only option is --check")
    pattern = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
    stale = []
    for page in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("research/**/*.md")]):
        text = page.read_text()
        if page.name in PAGES:
            fresh = output(*PAGES[page.name], program="avsg-research")
        else:
            fresh = pattern.sub(lambda m: m[1] + "\n" + TABLES[m[2]]() + "\n" + m[3], text)
        if fresh != text:
            stale.append(page.name)
            if not check:
                page.write_text(fresh)
    if check and stale:
        raise SystemExit(f"{', '.join(stale)}: tables are not what the commands say; run docs/figures.py")
    print(f"docs/figures.py: {len(stale)} pages {'rewritten' if stale else 'changed'}")


main()
