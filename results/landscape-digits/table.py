"""Write the table of README.md from landscape.json: gradient norm and curvature per method, over seeds."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path

from dign.core.files import write_text

HERE = Path(__file__).parent
START, END = "<!-- table: made by table.py -->\n", "<!-- end of table -->"
KINDS = {"standard": "Standard", "dign": "DiGN, weight 0.2 (published)", "dign-strong": "DiGN, weight 1"}

VALUES: dict[str, tuple[Callable[[dict], float], str]] = {
    "accuracy (%)": (lambda m: m["clean_accuracy"], ".1f"),
    "accuracy (%) at the largest radius": (lambda m: m["panels"]["accuracy"]["mean"][-1], ".1f"),
    "mean loss difference there": (lambda m: m["panels"]["loss_difference"]["mean"][-1], ".3f"),
    "mean ‖∇L‖": (lambda m: m["gradient_norm"]["mean"], ".3f"),
    "median ‖∇L‖": (lambda m: m["gradient_norm"]["median"], ".1e"),
    "mean E‖Hz‖²": (lambda m: m["curvature"]["mean"], ".0f"),
    "median E‖Hz‖²": (lambda m: m["curvature"]["median"], ".1e"),
}
COMPARED = ("mean loss difference there", "mean ‖∇L‖", "mean E‖Hz‖²")


def main() -> None:
    models = json.loads((HERE / "landscape.json").read_text())["models"]
    runs = {kind: [m for m in models if m["name"].rpartition("-")[0] == kind] for kind in KINDS}
    readme = HERE / "README.md"
    before, _, rest = readme.read_text().partition(START)
    _, _, after = rest.partition(END)
    write_text(readme, before + START + table(runs) + END + after)


def table(runs: dict[str, list[dict]]) -> str:
    head = ["method", *(f"{name}" for name in VALUES), *(f"seeds below Standard in {name}" for name in COMPARED)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for kind, group in runs.items():
        cells = [over_seeds([value(model) for model in group], form) for value, form in VALUES.values()]
        cells += [seeds_below(group, runs["standard"], VALUES[name][0]) for name in COMPARED]
        lines.append(f"| {KINDS[kind]} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def over_seeds(values: list[float], form: str) -> str:
    """Mean ± sample standard deviation over seeds."""
    return f"{statistics.mean(values):{form}} ± {statistics.stdev(values):{form}}"


def seeds_below(group: list[dict], standard: list[dict], value: Callable[[dict], float]) -> str:
    """On how many seeds a value is below that of Standard with the same seed."""
    if group is standard:
        return ""
    reference = {model["seed"]: value(model) for model in standard}
    return f"{sum(value(model) < reference[model['seed']] for model in group)} of {len(group)}"


if __name__ == "__main__":
    main()
