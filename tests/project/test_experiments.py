"""The grid files of the paper's tables: they load, say what they should, and quote the paper correctly."""

import re
from pathlib import Path

import pytest

from dign.grid.plan import read_plan
from dign.report.analysis.paper import published_rows
from dign.runs.config import RunConfig
from dign.runs.folder import make_run_method
from dign.runs.toml_files import read_toml
from dign.training.cost import standard_equivalents

FOLDER = Path(__file__).parents[2] / "experiments"
SINGLE_RUNS = sorted(FOLDER.glob("allout-*.toml"))
FILES = sorted(set(FOLDER.glob("*.toml")) - set(SINGLE_RUNS))
OF_THE_PAPER = [path for path in FILES if path.stem != "demo"]
SMALLER = ("laptop", "claims", "certified", "photos", "rivals")
FULL_SIZE = [path for path in OF_THE_PAPER if not path.stem.startswith(SMALLER)]
PAPER_KEYS = {"dign-without-cr": "dign_wo_cr", "dign+augmix": "dign_augmix"}


def header(path):
    lines = path.read_text().splitlines()
    return lines[: next(number for number, line in enumerate(lines) if not line.startswith("#"))]


def test_every_table_and_figure_has_its_files():
    names = {path.stem for path in FILES}
    assert {f"tables-1-and-2-{data}" for data in ("cifar10", "cifar100", "tiny-imagenet")} <= names
    assert {f"figure-2-{data}" for data in ("cifar10", "cifar100", "tiny-imagenet")} <= names
    assert {"table-3-cifar10", "table-3-cifar100", "sensitivity-cifar10"} <= names
    wanted = ("tables-1-and-2", "table-3", "figure-2", "sensitivity")
    assert {f"laptop-{what}-cifar10" for what in wanted} <= names


@pytest.mark.parametrize("path", SINGLE_RUNS, ids=lambda path: path.stem)
def test_a_single_run_loads_and_opens_with_its_command(path):
    config = RunConfig.from_mapping(read_toml(path))
    plain = ("cifar10", "wide_fastnet", "dign+cutout")
    hybrid = ("cifar10", "wide_fastnet_standardized", "dign+hybridaugment")
    expected = hybrid if "hybrid" in path.stem else plain
    assert (config.data, config.model, make_run_method(config).key) == expected
    text = "\n".join(header(path))
    assert re.search(rf"dign train experiments/{path.name} .*--out runs/", text) and "# Expect" in text


def test_runs_from_the_weights_of_others_keep_the_images_that_those_held_out():
    configs = [RunConfig.from_mapping(read_toml(path)) for path in SINGLE_RUNS]
    splits = {(config.seed, config.validation, config.validation_seed) for config in configs}
    assert len(configs) == 3 and len(splits) == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_loads_and_opens_with_command_time_and_number(path):
    assert read_plan(path).runs
    text = "\n".join(header(path))
    assert f"dign grid experiments/{path.name} --out runs/" in text
    assert "# Time: " in text and "# Expect" in text


@pytest.mark.parametrize("path", OF_THE_PAPER, ids=lambda path: path.stem)
def test_the_time_is_reckoned_from_the_cost_of_the_grid(path):
    plan, text = read_plan(path), "\n".join(header(path))
    assert f"{len(plan.runs)} run" in text
    models = len({run.config.model for run in plan.runs})
    cost = sum(standard_equivalents(run.config) for run in plan.runs) / models
    assert re.search(rf"\b{cost:.0f} (of them|Standard trainings)", text), cost


@pytest.mark.parametrize("path", OF_THE_PAPER, ids=lambda path: path.stem)
def test_the_numbers_to_expect_are_those_of_the_paper(path):
    """Every row of a table in the opening comment is looked up in the paper's tables."""
    plan, columns, checked = read_plan(path), [], 0
    data = plan.runs[0].config.data
    laptop_model = "densenet121" if "table-3" in path.stem else "resnet18"
    model = laptop_model if "laptop" in path.stem else plan.runs[0].config.model
    for line in header(path):
        if line == "# on Wide-ResNet-18:":
            model = "wide_resnet18"
        cells = [cell.strip() for cell in line.strip("# ").strip("|").split("|")]
        if cells[0] == "method":
            columns = cells[1:]
        elif len(cells) == len(columns) + 1 and "+-" in line:
            for column, cell in zip(columns, cells[1:], strict=True):
                paper = published_rows(data, model)[column][PAPER_KEYS.get(cells[0], cells[0])]
                assert cell == f"{paper['mean']:.1f} +- {paper['std']:.1f}", (line, column)
                checked += 1
    assert checked >= 20 or "table" not in path.stem


@pytest.mark.parametrize("path", FULL_SIZE, ids=lambda path: path.stem)
def test_full_size_files_follow_the_published_recipe(path):
    for run in read_plan(path).runs:
        config, method = run.config, make_run_method(run.config)
        assert (config.epochs, config.batch_size, config.lr, config.schedule) == (150, 512, 0.1, "step")
        assert (config.momentum, config.weight_decay, config.label_smoothing) == (0.9, 5e-4, 0.0)
        assert (config.crop, config.flip, config.jitter, config.rotation) == (4, True, 0.25, 2.0)
        tiny = config.data == "tiny-imagenet"
        if config.method == "dign" and "sensitivity" not in path.stem:
            assert (method.sigma_max, method.weight, method.samples) == (0.6 if tiny else 0.2, 0.2, 3)
            assert not method.together, "the published code passes each branch alone"
        if config.method == "rse":
            assert (method.sigma, method.ensemble) == (0.3 if tiny else 0.1, 10)
        if config.method == "at":
            assert method.steps == 7 and method.radius == pytest.approx(8 / 255)
        if config.method == "trades":
            assert method.weight == 3


def test_figure_2_needs_no_training_beside_the_tables():
    for data in ("cifar10", "cifar100", "tiny-imagenet"):
        tables = {run.name: run for run in read_plan(FOLDER / f"tables-1-and-2-{data}.toml").runs}
        for run in read_plan(FOLDER / f"figure-2-{data}.toml").runs:
            assert tables[run.name].config == run.config and tables[run.name].evaluation == run.evaluation


def test_the_laptop_files_share_their_runs():
    tables = {run.name: run for run in read_plan(FOLDER / "laptop-tables-1-and-2-cifar10.toml").runs}
    for what in ("figure-2", "table-3"):
        for run in read_plan(FOLDER / f"laptop-{what}-cifar10.toml").runs:
            assert tables[run.name].config == run.config and tables[run.name].evaluation == run.evaluation


def test_table_3_is_about_two_architectures():
    for data in ("cifar10", "cifar100"):
        plan = read_plan(FOLDER / f"table-3-{data}.toml")
        assert {run.config.model for run in plan.runs} == {"densenet121", "wide_resnet18"}
        assert len(plan.runs[0].evaluation.corruptions) == 19
