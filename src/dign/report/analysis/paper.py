"""The paper's numbers beside ours, where data set and model correspond.

`paper.json` holds Tables 1 to 3 of Tsiligkaridis and Tsiligkaridis, "Diverse Gaussian Noise Consistency
Regularization for Robustness and Uncertainty Calibration", IJCNN 2023 (arXiv:2104.01231).
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from dign.corruptions import FAMILIES, SEVERITIES
from dign.report.analysis.confidence_quantities import RAW
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA, MCA_N, Quantity, corruption_accuracy
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import Cell, Column, Row, Section, Table, number, signed, statistic_cell

DATA = {"cifar10": "cifar-10", "cifar100": "cifar-100", "tiny-imagenet": "tiny-imagenet"}
MODELS = {"densenet121": "densenet-121", "wide_resnet18": "wide-resnet-18"}
TITLES = {
    "Standard": "standard", "AT": "at", "TRADES": "trades", "RSE": "rse", "DeepAugment": "deepaugment",
    "AugMix": "augmix", "AugMax": "augmax", "DiGN w/o CR": "dign_wo_cr", "DiGN": "dign", "DiGN+AugMix": "dign_augmix",
}  # fmt: skip
MEANS = (
    replace(MCA_N, read=lambda run: run.results.mca_n),
    replace(MCA, read=lambda run: run.results.mca if run.results.goes_beyond_noise else None),
)
"""The paper calls them mCA-N and mCA on Tiny-ImageNet-C too, which has fewer corruptions: `_comparable` counts them."""
COMPARED = (CLEAN_ACCURACY, *MEANS, *map(corruption_accuracy, sorted(FAMILIES["noise"])), *RAW.values())


@cache
def published() -> dict[str, Any]:
    return json.loads((files("dign.report.analysis") / "paper.json").read_text(encoding="utf-8"))


def citation() -> str:
    source = published()["source"]
    return f'{source["authors"]}, "{source["title"]}", {source["venue"]}, arXiv:{source["arxiv"]}'


def published_rows(data: str, model: str) -> dict[str, dict[str, dict[str, float]]]:
    """Metric to method to mean and std, of the tables that are about this data set and model."""
    tables, name = published(), DATA.get(data)
    if name is None:
        return {}
    if model == "resnet18":
        return {**tables["table1_accuracy"][name], **tables["table2_calibration"][name]}
    return tables["table3_architectures"].get(name, {}).get(MODELS.get(model), {})


def published_mean(data: str, model: str, title: str, quantity: Quantity) -> float | None:
    cell = published_rows(data, model).get(quantity.label, {}).get(TITLES.get(title))
    return cell["mean"] if cell else None


def paper_comparison(study: Study) -> Table | None:
    """Ours, the paper's and the difference; None where the paper has nothing that corresponds."""
    sections = []
    for group in study.groups:
        rows = _rows(study, group)
        if rows:
            sections.append(Section(f"{group.label}, {group.model}", rows))
    if not sections:
        return None
    columns = (Column("Ours"), Column("Paper"), Column("Difference", "Ours minus the paper's."))
    caption = f"Mean ± population standard deviation over seeds. {_conditions(study)} Paper: {citation()}."
    return Table("paper", f"Against the paper, {study.data}", caption, "Metric", columns, tuple(sections))


def _rows(study: Study, group: Group) -> tuple[Row, ...]:
    if group.label != group.title:  # a variant of a method is not what the paper ran
        return ()
    theirs = published_rows(study.data, group.model)
    rows = []
    for quantity in COMPARED:
        paper = theirs.get(quantity.label, {}).get(TITLES.get(group.title))
        ours = group.statistic(quantity)
        if paper is None or ours is None or not _comparable(quantity, study):
            continue
        difference = ours.mean - paper["mean"]
        cells = (statistic_cell(ours), Cell(number(paper["mean"]), paper["mean"], paper["std"], 3),
                 Cell(signed(difference), difference))  # fmt: skip
        rows.append(Row(quantity.label, cells, group.slot, quantity.help))
    return tuple(rows)


def _comparable(quantity: Quantity, study: Study) -> bool:
    """The paper measured test images, at all five severities; a mean over corruptions has to be over as many as its."""
    if any(run.results.evaluation.split != "test" for run in study.runs):
        return False
    if not quantity.key.startswith("clean_") and tuple(study.severities) != SEVERITIES:
        return False
    tiny = study.data == "tiny-imagenet"
    if tiny and not quantity.key.startswith("clean_") and _lacks_jpeg(study):
        return False
    if quantity.key == "mca_n" or quantity.key.startswith("noise_"):
        return len(study.noises) == (2 if tiny else 3)
    if quantity.key == "mca" or quantity.key.startswith("all_"):
        return len(study.counted) == (14 if tiny else 18)
    return True


def _lacks_jpeg(study: Study) -> bool:
    """Whether corrupted images were measured that are not JPEG, as those of the published Tiny-ImageNet-C are."""
    return any(run.results.corruptions and not run.results.evaluation.jpeg_quality for run in study.runs)


def _conditions(study: Study) -> str:
    """The paper used the published benchmark files, 150 epochs, and chose checkpoints on the test set."""
    fly = any(run.results.evaluation.benchmark is None for run in study.runs)
    epochs = sorted({run.config["epochs"] for run in study.runs if isinstance(run.config.get("epochs"), int)})
    text = (
        "The paper trained for 150 epochs, tested on the published corrupted files and chose checkpoints on test data."
    )
    if fly:
        text += " Our corruptions were made on the fly."
    if study.data == "tiny-imagenet":
        text += " The published Tiny-ImageNet-C is not made from the validation images of Tiny-ImageNet."
        if _lacks_jpeg(study):
            text += (
                " Its files are JPEG, which smooths noise, and some corrupted images here are not: only what was "
                "measured on clean images is compared."
            )
    if epochs and epochs != [150]:
        text += f" Our epochs: {', '.join(map(str, epochs))}."
    return text
