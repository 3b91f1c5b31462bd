"""The card of a shared model: names are text, and nothing is claimed that was not measured."""

from dign.publish.model_card import card_text, read_results


def test_without_results_the_card_says_so(tmp_path):
    config = {"model": "tinynet", "data": "digits", "image_size": [8, 8], "classes": ["0", "1"]}
    text = card_text({"model": config, "method": "DiGN", "settings": {}}, read_results(tmp_path))
    assert "Not evaluated" in text and "tinynet on digits, trained with DiGN" in text


def test_names_in_a_card_are_text():
    config = {"model": "tinynet", "data": "folder:x", "image_size": [8, 8], "classes": ["<script>", "a|b\n# c"]}
    text = card_text({"model": config, "method": "DiGN", "settings": {}}, None)
    assert "\\<script\\>, a\\|b \\# c" in text
