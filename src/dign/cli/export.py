"""`dign export`."""

from __future__ import annotations

import click


@click.command("export", short_help="Write a run's model as ONNX or as a torch.export program.")
@click.argument("run", type=click.Path())
@click.option("--out", required=True, type=click.Path(), metavar="FILE", help="model.onnx, or model.pt2")
@click.option(
    "--images", type=click.IntRange(min=1), default=32, show_default=True, help="test images to check it with"
)
@click.option("--quiet", "-q", is_flag=True, help="no message at the end")
def command(run: str, out: str, images: int, quiet: bool) -> None:
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
    if quiet:
        return
    click.echo(
        f"Wrote {exported.path}: logits within {exported.difference:.1e} of PyTorch's on {exported.images} images "
        f"({', '.join(CHECKED)}).",
        err=True,
    )
    if exported.single_pass:
        click.echo("The file predicts in one pass; the run's method averages several: do that yourself.", err=True)
