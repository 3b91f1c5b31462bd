"""The card of a shared model: names are text, and nothing is claimed that was not measured."""

import torch
from torch import nn

from dign.evaluation.conditions import Conditions
from dign.evaluation.evaluate import evaluate
from dign.evaluation.results import pool_promises
from dign.evaluation.subjects import evaluate_run
from dign.publish.model_card import card_text, read_results
from dign.runs.folder import load_run
from dign.training.train import train


def test_without_results_the_card_says_so(tmp_path):
    config = {"model": "tinynet", "data": "digits", "image_size": [8, 8], "classes": ["0", "1"]}
    text = card_text({"model": config, "method": "DiGN", "settings": {}}, read_results(tmp_path))
    assert "Not evaluated" in text and "tinynet on digits, trained with DiGN" in text


def test_names_in_a_card_are_text():
    config = {"model": "tinynet", "data": "folder:x", "image_size": [8, 8], "classes": ["<script>", "a|b\n# c"]}
    text = card_text({"model": config, "method": "DiGN", "settings": {}}, None)
    assert "\\<script\\>, a\\|b \\# c" in text


def test_mixed_precision_is_named_where_it_was_used():
    config = {"model": "tinynet", "data": "digits", "image_size": [8, 8], "classes": ["0", "1"]}
    images, labels = torch.rand(6, 3, 8, 8), torch.tensor([0, 1] * 3)
    network, conditions = nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), Conditions(corruptions=("fog",))
    for precision, words in (("32", "; measured 20"), ("bf16", "; measured in mixed precision (bf16) 20")):
        results = evaluate(network, (images, labels), conditions, precision=precision)
        assert words in card_text({"model": config, "method": "DiGN", "settings": {}}, results)


def test_the_card_has_the_scores_before_the_calibrator_and_how_promises_are_kept(tmp_path):
    settings = {"data": "digits", "size": 8, "epochs": 2, "batch_size": 256, "method": "standard"}
    train(settings, tmp_path / "run", quiet=True)
    results = evaluate_run(load_run(tmp_path / "run"), Conditions(corruptions=("shot_noise", "fog"), severities=(1, 3)))
    config = {"model": "tinynet", "data": "digits", "image_size": [8, 8], "classes": ["0", "1"]}
    text = card_text({"model": config, "method": "Standard", "settings": {}}, results)
    before = results.calibrator.calibration.noise
    assert f"| noise, without its {results.calibrator.name} | {before.accuracy:.2f} | {before.ece:.2f} |" in text
    kept = pool_promises(results)["noise"]
    noise = results.uncertainty.noise
    shown = f"| noise (shot) | {noise.nll:.3f} | {noise.brier:.3f} | {noise.augrc:.2f} | {noise.auroc:.1f} |"
    answered = "- | -" if kept.answered is None else f"{kept.answered:.1f} | {kept.error:.1f}"
    assert f"{shown} {answered} | {kept.coverage['adaptive']:.1f} |" in text
    assert "| all corruptions |" not in text and text.count(f"| {results.summary.mca_name} |") == 2, "two of nineteen"
