"""Write the tables of README.md from results.json and sequences.json."""

import json
from pathlib import Path

from dign import Results
from dign.core.files import write_text
from dign.corruptions.sets import SETS, TITLES

HERE = Path(__file__).parent
NAMES = ("means", "corruptions", "sequences")


def main() -> None:
    results = Results.load(HERE)
    sequences = json.loads((HERE / "sequences.json").read_text())
    tables = (means(results), by_severity(results), flips(sequences))
    text = (HERE / "README.md").read_text()
    for name, made in zip(NAMES, tables, strict=True):
        start, end = f"<!-- {name}: made by table.py -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(start)
        text = before + start + made + end + rest.partition(end)[2]
    write_text(HERE / "README.md", text)


def means(results: Results) -> str:
    lines = ["| images | accuracy % | ECE % |", "|---|---|---|"]
    lines.append(f"| clean | {results.clean.accuracy:.1f} | {results.clean.ece:.1f} |")
    for name, scores in results.sets.items():
        title = f"{TITLES[name]} ({len(SETS[name])} corruptions)"
        lines.append(f"| {title} | {scores.accuracy:.1f} | {scores.ece:.1f} |")
    return "\n".join(lines) + "\n"


def by_severity(results: Results) -> str:
    lines = ["| corruption | 1 | 2 | 3 | 4 | 5 |", "|---|---|---|---|---|---|"]
    for name, corruption in results.corruptions.items():
        cells = (f"{scores.accuracy:.1f}" for scores in corruption.severities.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def flips(sequences: dict) -> str:
    lines = ["| perturbation | flips % | top-5 distance |", "|---|---|---|"]
    for name, scores in {**sequences["sequences"], "mean": sequences["mean"]}.items():
        lines.append(f"| {name} | {scores['flip_probability']:.2f} | {scores['top5_distance']:.3f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
