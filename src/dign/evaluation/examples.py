"""A few test images under each corruption with what a model made of them: `examples.json`, for the report."""

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from dign.core.pixels import to_float
from dign.core.seeds import make_generator
from dign.corruptions.benchmark.read import Condition

EXAMPLES_FILE = "examples.json"


@torch.no_grad()
def example_predictions(
    predict: Callable[[Tensor, torch.Generator], Tensor],
    conditions: Iterable[Condition],
    classes: Sequence[str],
    *,
    count: int = 3,
    device: torch.device | str = "cpu",
) -> dict[str, Any]:
    """The same `count` images, spread over the data, in every condition, with prediction and confidence (percent)."""
    entries = []
    for condition in conditions:
        for index in range(0, len(condition), max(1, len(condition) // count))[:count]:
            image = condition.images[index : index + 1]
            generator = make_generator(0, f"example/{condition.name}/{condition.severity}", index, device)
            probabilities = predict(to_float(image.to(device)), generator)[0]
            confidence, predicted = probabilities.max(0)
            entries.append(
                {
                    "index": index,
                    "corruption": condition.name,
                    "severity": condition.severity,
                    "label": classes[int(condition.labels[index])],
                    "prediction": classes[int(predicted)],
                    "confidence": round(100 * float(confidence), 2),
                    "png": png_base64(image[0]),
                }
            )
    return {"images": entries}


def png_base64(image: Tensor) -> str:
    """A uint8 image (3,H,W) as a PNG in base64."""
    buffer = io.BytesIO()
    Image.fromarray(image.cpu().permute(1, 2, 0).contiguous().numpy()).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()
