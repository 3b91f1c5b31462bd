"""Examples show what the model saw and said."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from dign.corruptions import corrupt
from dign.evaluation.examples import EXAMPLES_FILE
from dign.evaluation.subjects import evaluate_run

pytestmark = pytest.mark.slow


def test_examples_show_what_the_model_saw_and_said(run, noise):
    evaluate_run(run, noise, device="cpu")
    entries = json.loads((run.path / EXAMPLES_FILE).read_text())["images"]
    assert len(entries) == 3 * 5 and {entry["corruption"] for entry in entries} == {"clean", *noise.corruptions}
    test = run.data().test
    for entry in entries:
        shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(entry["png"])))).transpose(2, 0, 1)
        expected = test.images[entry["index"]]
        if entry["severity"]:
            expected = corrupt(
                expected[None], entry["corruption"], entry["severity"], profile="imagenet", first=entry["index"]
            )[0]
        assert np.array_equal(shown, expected.numpy())
        assert entry["label"] == run.classes[test.labels[entry["index"]]]
        assert 0 < entry["confidence"] <= 100 and entry["prediction"] in run.classes
