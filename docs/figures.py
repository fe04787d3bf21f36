#!/usr/bin/env python3
"""Writes the tables in docs/ and docs/paper/ that do not depend on the machine.

    docs/figures.py            runs the commands and rewrites the tables
    docs/figures.py --check    fails if a table differs from what its command says now

A table stands between the lines `<!-- figures: NAME -->` and `<!-- end -->`. `docs/paper/paper-results.md` is the whole output of one command.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACE = "tests/data/nomicon-4k-k256.npz"


def output(*arguments, program="avsg-cli"):
    """The standard output of a subcommand."""
    command = ["cargo", "run", "--release", "--locked", "--quiet", "-p", program, "--", *arguments]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout


def research(*arguments):
    """The output of a subcommand of avsg-research."""
    return output(*arguments, program="avsg-research")


def lines_of_table(text):
    """The table in an output, without the spaces that align its columns."""
    lines = (line for line in text.splitlines(keepends=True) if line.startswith("|"))
    return "".join(re.sub("-{3,}", "---", re.sub(" {2,}", " ", line)) for line in lines)


def learned():
    """Hit rates of learned lifetimes beside exact LRU and the optimum."""
    lines = [["ids", "S", "exact LRU", "`wide`, constant", "`wide`, learned", "Belady's optimum"], ["---"] * 6]
    with tempfile.TemporaryDirectory() as folder:
        synthetic = f"{folder}/ids.npz"
        output("synth", "--k", "2048", "--steps", "1000", "--gamma", "0.8", "--mu", "0.5", "--out", synthetic)
        for name, trace, slots in [
            ("committed trace, K = 256", TRACE, (512, 1024)), ("synthetic, K = 2048", synthetic, (4096, 8192))]:
            answer = json.loads(output("compare", trace, "--mtp0", "--slots", ",".join(map(str, slots)), "--json", "-"))
            rates = {(p["policy"], at["slots"]): at["hit_rate"] for p in answer["policies"] for at in p["at"]}
            policies = "exact LRU", "constant:127", "learned", "Belady's optimum"
            lines += [[name, s, *(f"{rates[policy, s]:.2f}" for policy in policies)] for s in slots]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def policies():
    """Hit rates by rule."""
    return lines_of_table(output("compare", TRACE))


def contenders():
    """Hit rates of policies that AVSG does not have."""
    return lines_of_table(research("contenders", TRACE))


# Pages that a command writes as a whole.
PAGES = {"paper-results.md": ("paper", TRACE)}
TABLES = {f.__name__: f for f in (learned, policies, contenders)}


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        raise SystemExit(f"argument is {sys.argv[1]}, but the only option is --check")
    pattern = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
    stale = []
    for page in sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/paper/**/*.md")]):
        text = page.read_text()
        if page.name in PAGES:
            fresh = research(*PAGES[page.name])
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
