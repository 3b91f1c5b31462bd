"""The playground's page: a Gradio app on this computer that asks nothing of any other.

Gradio is imported only where the page is built: the cards are made and tested without it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dign.app.answers import Examples, Player, View, calibration_under, look, true_class
from dign.core.errors import UserError
from dign.corruptions import NAMES, SEVERITIES, family_of
from dign.evaluation.examples import png_base64
from dign.report.analysis.quantities import corruption_title
from dign.report.html.calibration_charts import reliability_diagram
from dign.report.html.markup import Html, join, tag
from dign.report.palette import color_of

if TYPE_CHECKING:
    from gradio import Blocks

LOOPBACK = ("127.0.0.1", "localhost")
FIRST_CORRUPTION, FIRST_SEVERITY = "gaussian_noise", 3
"""What the page opens with: something to see at once."""
SANS = ("system-ui", "Segoe UI", "Roboto", "Helvetica Neue", "Liberation Sans", "Arial", "sans-serif")
"""Fonts that a computer has: none is fetched."""
MOST_BYTES = "64mb"


def answer(
    players: Sequence[Player],
    examples: Examples,
    file: str | None,
    corruption: str,
    severity: int,
    draw: int,
    profile: str | None = None,
) -> Html:
    """The right half of the page: what the models see and say. A mistake becomes its sentence on the page."""
    if file is None:
        return tag("p", "Drop in an image, or pick one of the examples.", class_="note")
    try:
        views = look(players, Path(file), corruption, severity, profile=profile, draw=draw)
        truth = true_class(Path(file), examples)
    except UserError as error:
        return tag("p", _without_path(str(error), file), class_="note", role="alert")
    condition = "clean" if severity == 0 else f"{corruption_title(corruption)}, severity {severity}"
    cards = [
        card(player, view, truth, *calibration_under(player, corruption, severity, profile))
        for player, view in zip(players, views, strict=True)
    ]
    return join(_seen(views, condition, truth), tag("div", cards, class_="cards"))


def _without_path(sentence: str, file: str) -> str:
    """The name that the upload has on disk means nothing to a person."""
    return sentence.replace(f" {file}", "")


def _seen(views: Sequence[View], condition: str, truth: str | None) -> Html:
    """One picture for each image size among the models."""
    pictures = {tuple(view.image.shape): view.image for view in views}
    figures = []
    for (_, height, width), image in pictures.items():
        source = f"data:image/png;base64,{png_base64(image)}"
        about = f"What the models see: {condition}, {width} × {height} pixels"
        figures.append(tag("figure", tag("img", src=source, alt=about), tag("figcaption", about)))
    known = tag("p", "True class: ", tag("b", truth), class_="truth") if truth is not None else None
    return tag("div", figures, known, class_="seen")


def card(player: Player, view: View, truth: str | None, caption: str, calibration: Any) -> Html:
    """One model: its most probable classes as bars, and the reliability diagram of this condition."""
    label, confidence = view.top[0]
    verdict = None if truth is None else tag("span", "right" if label == truth else "wrong", class_="verdict")
    head = tag("h3", player.name, " ", tag("small", player.title))
    said = tag("p", tag("b", label), f" {100 * confidence:.1f} % ", verdict, class_="said")
    return tag("section", head, said, tag("ul", [_bar(*each, truth) for each in view.top], class_="bars"),
               _calibration(player, caption, calibration), class_=f"model s{player.slot}")  # fmt: skip


def _bar(label: str, probability: float, truth: str | None) -> Html:
    filled = tag("i", class_="fill", style=f"width:{100 * probability:.1f}%")
    name = tag("span", label, class_="true" if label == truth else None)
    return tag("li", name, tag("span", filled, class_="track"), tag("span", f"{100 * probability:.1f} %"))


def _calibration(player: Player, caption: str, calibration: Any) -> Html:
    if calibration is None:
        return tag("p", caption, class_="note")
    scores = calibration.compute()
    about = f"{caption}: accuracy {scores.accuracy:.1f} %, calibration error (ECE) {scores.ece:.1f} %"
    diagram = reliability_diagram(f"Calibration of {player.name}, {about}", calibration, player.slot)
    return tag("figure", diagram, tag("figcaption", f"Calibration on test images, {about}, {scores.count} images"))


def stylesheet(players: Sequence[Player]) -> str:
    """The page's own rules, the report's rules for charts, and the models' colors on light and on dark."""
    own = resources.files("dign.app").joinpath("page.css").read_text(encoding="utf-8")
    report = resources.files("dign.report.html").joinpath("page.css").read_text(encoding="utf-8")
    charts = [line for line in report.splitlines() if line.startswith(".chart")]
    colors = [f".s{p.slot}{{--c:{color_of(p.slot)}}}.dark .s{p.slot}{{--c:{color_of(p.slot, True)}}}" for p in players]
    return "\n".join([own, *charts, *colors])


def build_page(players: Sequence[Player], examples: Examples, profile: str | None = None) -> Blocks:
    """The Gradio app; `serving` starts it with its style."""
    gradio = _gradio()
    pictures = [image.permute(1, 2, 0).contiguous().numpy() for image in examples.images]
    choices = [(f"{corruption_title(name)} ({family_of(name)})", name) for name in NAMES]
    with gradio.Blocks(title="dign playground", analytics_enabled=False) as page:
        gradio.HTML(
            "<h1>Playground</h1><p>Corrupt an image and see what each model makes of it, and how sure it is.</p>"
        )
        draw = gradio.State(0)
        with gradio.Row():
            with gradio.Column(scale=2, min_width=280):
                image = _picture_field(gradio, pictures[0] if pictures else None)
                corruption = gradio.Dropdown(choices, value=FIRST_CORRUPTION, label="Corruption", elem_id="corruption")
                severity = gradio.Slider(0, max(SEVERITIES), FIRST_SEVERITY, step=1, label="Severity (0: clean)",
                                         buttons=[], elem_id="severity")  # fmt: skip
                again = gradio.Button("Draw the corruption's randomness again", size="sm")
                gallery = _gallery(gradio, pictures, examples)
            with gradio.Column(scale=5, min_width=320):
                shown = gradio.HTML(elem_id="answer", apply_default_css=False)
        hidden = {"show_progress": "hidden", "api_visibility": "private"}
        again.click(lambda number: number + 1, draw, draw, **hidden)
        if pictures:
            gallery.select(_picker(gradio, pictures), None, image, **hidden)
        gradio.on(
            [page.load, image.change, corruption.change, severity.change, draw.change],
            lambda file, name, level, number: str(answer(players, examples, file, name, int(level), number, profile)),
            [image, corruption, severity, draw], shown, trigger_mode="always_last", **hidden,
        )  # fmt: skip
    return page


def _picture_field(gradio: Any, first: Any) -> Any:
    field = gradio.Image(first, type="filepath", image_mode=None, format="png", sources=["upload", "clipboard"],
                         label="Image", height=260, buttons=[], elem_id="image")  # fmt: skip
    opened = field.preprocess

    def as_dropped(payload: Any) -> str | None:
        sent_as_file = payload is not None and payload.path and not (payload.url or "").startswith("data:")
        return payload.path if sent_as_file else opened(payload)

    field.preprocess = as_dropped  # Gradio would open the file, and where it is no image say so in its log alone
    return field


def _gallery(gradio: Any, pictures: list[Any], examples: Examples) -> Any:
    if not pictures:
        return gradio.HTML(str(tag("p", f"No examples: {examples.missing}", class_="note")))
    items = list(zip(pictures, examples.labels, strict=True))
    gradio.HTML(str(tag("p", "Test images, with their classes:", class_="note")))
    return gradio.Gallery(items, label="Test images", show_label=False, allow_preview=False, format="png", buttons=[],
                          height="auto", interactive=False, elem_id="examples")  # fmt: skip


def _picker(gradio: Any, pictures: list[Any]) -> Callable[[Any], Any]:
    def pick(event: Any) -> Any:
        return pictures[event.index]

    pick.__annotations__ = {"event": gradio.SelectData}  # Gradio goes by the annotation, and is not imported above
    return pick


@contextmanager
def serving(page: Blocks, css: str, *, host: str, port: int, browser: bool) -> Iterator[str]:
    """Serve a page until the block ends; gives its address. Nothing is shared, recorded or reported."""
    gradio = _gradio()
    port = free_port(host, port)
    font = gradio.themes.Default(font=SANS, font_mono=("ui-monospace", "monospace"))
    with _no_proxy_for(host):
        _, address, _ = page.launch(
            server_name=host, server_port=port, share=False, inbrowser=browser, prevent_thread_lock=True, quiet=True,
            css=css, theme=font, footer_links=[], run_history=False, ssr_mode=False, mcp_server=False, pwa=False,
            enable_monitoring=False, max_file_size=MOST_BYTES,
        )  # fmt: skip
    try:
        yield address
    finally:
        page.close(verbose=False)


@contextmanager
def _no_proxy_for(host: str) -> Iterator[None]:
    """Gradio asks its own server whether it is up; that must not go through a company's proxy."""
    before = os.environ.get("NO_PROXY")
    os.environ["NO_PROXY"] = ",".join(filter(None, [before, os.environ.get("no_proxy"), host, *LOOPBACK]))
    try:
        yield
    finally:
        if before is None:
            del os.environ["NO_PROXY"]
        else:
            os.environ["NO_PROXY"] = before


def free_port(host: str, port: int) -> int:
    """`port` if a server can listen there, or any free one for 0. IPv4 alone: Gradio cannot write an IPv6 address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, kind, protocol)) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
            return trial.getsockname()[1]
    except socket.gaierror as error:
        raise UserError(
            f"--host {host} is no IPv4 address: use 127.0.0.1, or 0.0.0.0 for all of this computer's."
        ) from error
    except PermissionError as error:
        raise UserError(f"Port {port} may not be used by you: choose one above 1023 with --port.") from error
    except OSError as error:
        raise UserError(
            f"Port {port} of {host} cannot be used ({(error.strerror or str(error)).lower()}): "
            "choose another with --port, or --port 0 for any free one."
        ) from error


def check_gradio() -> None:
    if find_spec("gradio") is None:
        raise UserError("The playground needs Gradio, which is not installed: `pip install 'dign[play]'`.")


def _gradio() -> Any:
    check_gradio()
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read wherever Gradio would report; before its import
    import gradio

    return gradio
