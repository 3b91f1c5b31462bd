"""The card of a shared model: names are text, and nothing is claimed that was not measured."""

import torch
from torch import nn

from dign.evaluation.conditions import Conditions
from dign.evaluation.evaluate import evaluate
from dign.publish.model_card import card_text, read_results


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
