"""`dign calibrate`."""

from __future__ import annotations

import click

from dign.cli.messages import say
from dign.cli.options import json_option, print_json, quiet_option, skip_bad_option

KINDS, ON = ("temperature", "vector", "histogram"), ("clean", "noise", "both")


@click.command("calibrate", short_help="Fit confidences on held-out images, and store that with the model.")
@click.argument("model", type=click.Path())
@click.option("--data", metavar="NAME", help="held-out images: a data set or folder:PATH  [default: the run's own]")
@click.option("--kind", type=click.Choice(KINDS), default="temperature", show_default=True, help="what is fitted")
@click.option("--on", type=click.Choice(ON), help="images as they are, under the method's noise, or both")
@skip_bad_option
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, ...")
@quiet_option
@json_option
def command(
    model: str,
    data: str | None,
    kind: str,
    on: str | None,
    skip_unreadable: bool,
    device: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Calibrate MODEL, a finished run or a hub folder, on labeled images that it was not trained on.

    Training does this by itself where it has validation images. The outcome, calibration.json, is part of the model:
    predict, evaluate, export, hub and play use it. Images that the model was trained on are left out, and where none
    are left nothing is fitted. Test images, of the run or of a data set, are never used. Images of --data are
    remembered, so that the model is not measured on them.

    \b
    Examples:
      dign calibrate runs/photos
      dign calibrate runs/photos --data folder:more-photos --on noise
      dign calibrate hub:models/photos --data folder:labeled-photos --kind vector
    """
    from dign.core.errors import quote_path
    from dign.evaluation.results import RESULTS_FILE
    from dign.publish.model_card import note_calibrator
    from dign.runs.calibrate import calibrate_model
    from dign.runs.hub_config import hub_folder, is_hub_folder

    outcome = calibrate_model(model, data, kind=kind, on=on, skip_unreadable=skip_unreadable, device=device)
    if is_hub_folder(hub_folder(model)) and outcome.is_new:
        note_calibrator(hub_folder(model), outcome.calibrator)
    if as_json:
        print_json(outcome.to_json())
    elif not quiet:
        say(outcome.describe())
        if outcome.is_new and (hub_folder(model) / RESULTS_FILE).is_file():
            say(
                f"Its results were measured without this: `dign evaluate {quote_path(model)}` measures it as it is now."
            )
