"""The table of certified accuracies is what the files beside it say."""

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "results" / "certified-cifar10"
TITLES = {"rse-sigma": "noise alone (RSE)", "consistency-sigma": "Consistency", "dign-sigma_max": "DiGN, one level"}
RADII = {"0.12": ("0", "0.1", "0.25"), "0.25": ("0", "0.25", "0.5")}


@pytest.mark.parametrize("sigma", RADII)
@pytest.mark.parametrize("name", TITLES)
def test_a_row(name, sigma):
    content = json.loads((FOLDER / f"{name}={sigma}" / f"certificates-{sigma}.json").read_text())
    rows = content["rows"]
    assert (len(rows), content["plan"]["n"], content["plan"]["alpha"]) == (500, 10_000, 0.001)
    shares = [
        f"{100 * sum(row['correct'] and row['radius'] >= float(radius) for row in rows) / len(rows):.1f}"
        for radius in RADII[sigma]
    ]
    draws = f"{sum(row['draws'] for row in rows) / len(rows):.0f}"
    lines = (FOLDER / "README.md").read_text().split(f"| sigma {sigma}, radius |")[1].splitlines()
    (line,) = [line for line in lines[:5] if line.startswith(f"| {TITLES[name]}")]
    assert [cell.strip() for cell in line.strip("|").split("|")][1:] == [*shares, draws]
