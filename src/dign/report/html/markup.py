"""SVG elements for the charts: text and attributes are escaped, as the templates escape everything else."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element; children are text, markup, None or lists of these.

    `class_` gives class and `stroke_width` gives stroke-width; None leaves an attribute out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = join(children)
    return Markup(f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>")


def join(parts: Iterable[object]) -> Markup:
    """Markup as it is, text escaped, None left out, lists flattened."""
    flat = (join(part) if isinstance(part, list | tuple) else escape(part) for part in parts if part is not None)
    return Markup("").join(flat)


def _attribute(value: object) -> object:
    """Coordinates need no more than a hundredth of a pixel."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
