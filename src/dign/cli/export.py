"""`dign export`."""

from __future__ import annotations

import click

from dign.cli.messages import say
from dign.cli.options import json_option, print_json, quiet_option


@click.command("export", short_help="Write a run's model as ONNX or as a torch.export program.")
@click.argument("run", type=click.Path())
@click.option("--out", required=True, type=click.Path(), metavar="FILE", help="model.onnx, or model.pt2")
@click.option(
    "--images", type=click.IntRange(min=1), default=32, show_default=True, help="test images to check it with"
)
@quiet_option
@json_option
def command(run: str, out: str, images: int, quiet: bool, as_json: bool) -> None:
    """Write the model of a finished RUN for other runtimes, normalization included, for batches of any size.

    ensemble:RUN,RUN,... writes several runs or hub folders as one model, the mean of their softmax.

    Before the file takes its place it is run (ONNX under onnxruntime) on clean and corrupted test images, and its
    logits are compared with PyTorch's. ONNX needs the extra dign[onnx].

    \b
    Examples:
      dign export runs/photos --out photos.onnx
      dign export runs/photos --out photos.pt2
      dign export ensemble:runs/seed-0,runs/seed-1 --out photos.onnx
    """
    from dign.publish.export import CHECKED, export_ensemble, export_run
    from dign.runs.ensemble import split_members
    from dign.runs.folder import load_run

    members = split_members(run)
    exported = (
        export_ensemble(members, out, images=images) if members else export_run(load_run(run), out, images=images)
    )
    if as_json:
        facts = {key: getattr(exported, key) for key in ("difference", "images", "single_pass")}
        print_json({"file": str(exported.path), **facts})
        return
    if quiet:
        return
    say(
        f"Wrote {exported.path}: logits within {exported.difference:.1e} of PyTorch's on {exported.images} images "
        f"({', '.join(CHECKED)})."
    )
    if exported.single_pass:
        say("The file predicts in one pass; the run's method averages several: do that yourself.")
