"""Whatever stands in a run folder's files, the report is made or one sentence says why not."""

import copy
import json
import random

import pytest

from dign.core.errors import UserError
from dign.report.make import report_text, study_of

pytestmark = pytest.mark.slow

STRANGE = (
    None,
    True,
    -1,
    0,
    1e308,
    10**400,
    float("nan"),
    "",
    "x",
    "5",
    0.5,
    100,
    2**63,
    [],
    {},
    [1],
    {"a": 1},
    "\ud800",
)
PANELS = {name: {"mean": [0.1, 0.2]} for name in ("loss_difference", "accuracy", "first_order", "second_order")}
EXAMPLE = {"index": 1, "corruption": "fog", "severity": 3, "label": "7", "prediction": "1", "confidence": 62.5}
FILES = {
    "landscape.json": {"settings": {"radii": [1, 2]}, "models": [{"panels": PANELS}]},
    "examples.json": {"images": [{**EXAMPLE, "png": "iVBORw0KGgo="}]},
    "run.json": {"commit": "a", "versions": {"x": "y"}},
    "metrics.jsonl": [
        {"step": 20, "epoch": 1, "loss": 2.0, "terms": {"a": 1}},
        {"step": 40, "epoch": 2, "validation": {"accuracy": 50.0, "loss": 0.1}},
        {"step": 60, "epoch": 3, "loss": 1.0},
        {"step": 60, "epoch": 3, "validation": {"accuracy": 70.0}},
    ],
}


def places(value, path=()):
    """Paths to everything inside a JSON value, of lists only to the first three entries."""
    inside = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*path, key)
        yield from places(part, (*path, key))


def disturbed(value, random):
    value = copy.deepcopy(value)
    *path, last = random.choice(list(places(value)))
    part = value
    for key in path:
        part = part[key]
    part[last] = random.choice(STRANGE)
    return value


def write(path, value):
    lines = value if path.suffix == ".jsonl" else [value]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("name", ["results.json", *FILES])
def test_strange_values_do_no_harm(fake_run, tmp_path, name):
    folder = fake_run(tmp_path / "a")
    fake_run(tmp_path / "b", "Standard")
    for other, value in FILES.items():
        write(folder / other, value)
    assert 'id="examples"' in report_text(study_of([tmp_path]), "html")  # undisturbed, all of it is shown
    original = FILES.get(name) or json.loads((folder / name).read_text())
    draws = random.Random(0)
    for _ in range(15):
        write(folder / name, disturbed(original, draws))
        try:
            study = study_of([tmp_path])
            for format in ("html", "markdown", "latex", "csv"):
                report_text(study, format).encode()
        except UserError as error:
            assert len(str(error)) < 500
