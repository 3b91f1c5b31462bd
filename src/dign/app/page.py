"""The playground's page: a Gradio app on this computer that asks nothing of any other.

Gradio is imported where the page is built: the command says how to install it before it is needed.
"""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dign.app.answers import Examples, Player
from dign.app.cards import answer, note
from dign.core.errors import UserError
from dign.corruptions import NAMES, SEVERITIES, family_of
from dign.report.analysis.quantities import corruption_title

if TYPE_CHECKING:
    from gradio import Blocks

LOOPBACK = ("127.0.0.1", "localhost")
FIRST_CORRUPTION, FIRST_SEVERITY = "gaussian_noise", 3
"""What the page opens with: something to see at once."""
SANS = ("system-ui", "Segoe UI", "Roboto", "Helvetica Neue", "Liberation Sans", "Arial", "sans-serif")
"""Fonts that a computer has: none is fetched."""
MOST_BYTES = "64mb"


def build_page(players: Sequence[Player], examples: Examples, profile: str | None = None) -> "Blocks":
    """The Gradio app; `serving` starts it with its style."""
    gradio = _gradio()
    pictures = [image.permute(1, 2, 0).contiguous().numpy() for image in examples.images]
    choices = [(f"{corruption_title(name)} ({family_of(name)})", name) for name in NAMES]
    with gradio.Blocks(title="dign playground", analytics_enabled=False) as page:
        gradio.HTML(
            "<h1>Playground</h1><p>Corrupt an image and see what each model makes of it, and how sure it is.</p>",
            elem_id="intro",
        )
        draw = gradio.State(0)
        with gradio.Row(elem_id="playground"):
            with gradio.Column(scale=2, min_width=280, elem_id="controls"):
                image = _image_field(gradio, pictures[0] if pictures else None)
                corruption = gradio.Dropdown(choices, value=FIRST_CORRUPTION, label="Corruption", elem_id="corruption")
                severity = gradio.Slider(0, max(SEVERITIES), FIRST_SEVERITY, step=1, label="Severity (0: clean)",
                                         buttons=[], elem_id="severity")  # fmt: skip
                again = gradio.Button("Draw the corruption's randomness again", size="sm")
                gallery = _gallery(gradio, pictures, examples)
            with gradio.Column(scale=5, min_width=320, elem_id="answers"):
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


def _image_field(gradio: Any, first: Any) -> Any:
    """A field that hands on an uploaded file as it is, so that what cannot be read is answered on the page."""
    field = gradio.Image(first, type="filepath", image_mode=None, format="png", sources=["upload", "clipboard"],
                         label="Image", height=260, buttons=[], elem_id="image")  # fmt: skip
    read_image = field.preprocess

    def keep_file(payload: Any) -> str | None:
        is_file = payload is not None and payload.path and not (payload.url or "").startswith("data:")
        path: str | None = payload.path if is_file else read_image(payload)
        return path

    # Replaced on the instance: Gradio writes a .pyi file beside the source of every subclass of its components.
    field.preprocess = keep_file
    return field


def _gallery(gradio: Any, pictures: list[Any], examples: Examples) -> Any:
    if not pictures:
        return gradio.HTML(str(note(f"No examples: {examples.missing}")))
    items = list(zip(pictures, examples.labels, strict=True))
    gradio.HTML(str(note("Test images, with their classes:")), elem_id="examples-title")
    return gradio.Gallery(items, label="Test images", show_label=False, allow_preview=False, format="png", buttons=[],
                          height="auto", interactive=False, elem_id="examples")  # fmt: skip


def _picker(gradio: Any, pictures: list[Any]) -> Callable[[Any], Any]:
    def pick(event: gradio.SelectData) -> Any:  # Gradio passes the event by this annotation
        return pictures[event.index]

    return pick


@contextmanager
def serving(page: "Blocks", css: str, *, host: str, port: int, browser: bool) -> Iterator[str]:
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
    """Gradio asks its own server whether it is up; that must not go through a proxy."""
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
    """`port` if a server can listen there, or any free one for 0; IPv4 only, as Gradio has no IPv6 addresses."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, kind, protocol)) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
            return int(trial.getsockname()[1])
    except socket.gaierror as error:
        raise UserError(
            f"invalid host '{host}': expected an IPv4 address, 127.0.0.1, or 0.0.0.0 for all of this computer's"
        ) from error
    except PermissionError as error:
        raise UserError(f"port {port} needs privileges: choose one above 1023") from error
    except OSError as error:
        raise UserError(
            f"port {port} of {host} cannot be used ({(error.strerror or str(error)).lower()}): "
            "choose another, or 0 for any free one"
        ) from error


def check_gradio() -> None:
    if find_spec("gradio") is None:
        raise UserError("The playground needs Gradio, which is not installed: `pip install 'dign[play]'`.")


def _gradio() -> Any:
    check_gradio()
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read wherever Gradio would report; before its import
    import gradio

    return gradio
