"""HTML and SVG built so that a text can never become markup by accident."""

from __future__ import annotations

import html


class Html(str):
    """Markup. Any other string is text, and is escaped when it becomes part of a page."""

    __slots__ = ()


def text(value: object) -> Html:
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def join(*parts: object) -> Html:
    """Parts in a row: markup as it is, text escaped, None left out, lists flattened."""
    flat = []
    for part in parts:
        if isinstance(part, list | tuple):
            flat.append(join(*part))
        elif part is not None:
            flat.append(text(part))
    return Html("".join(flat))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element: `class_` gives class, `stroke_width` gives stroke-width; None and False leave an attribute out."""
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        written.append(f" {key}" if value is True else f' {key}="{text(_attribute(value))}"')
    inner = join(*children)
    if not inner and name in _VOID:
        return Html(f"<{name}{''.join(written)}>")
    if not inner and name in _SVG_EMPTY:
        return Html(f"<{name}{''.join(written)}/>")
    return Html(f"<{name}{''.join(written)}>{inner}</{name}>")


def _attribute(value: object) -> str:
    """Coordinates need no more than a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


_VOID = {"meta", "input", "br", "img", "hr"}
_SVG_EMPTY = {"path", "line", "rect", "circle", "polyline", "polygon"}
