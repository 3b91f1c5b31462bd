"""The site: `make docs` builds it from this folder into build/docs, with warnings as errors."""

import importlib
import re

import dign

project = "dign"
author = "the dign contributors"
copyright = f"2026, {author}"
version = release = dign.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # examples of JSON with remarks in them

html_theme = "furo"
html_title = f"dign {dign.__version__}"
html_copy_source = False

highlight_language = "none"  # a block that names no language has none
default_role = "code"
autodoc_default_options = {"members": True, "member-order": "bysource", "show-inheritance": True}
autodoc_inherit_docstrings = False
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"


def show_what_is_loaded_late() -> None:
    """Sphinx looks into a module, not at what its `__getattr__` would load."""
    for name in ("dign.corruptions", "dign.data"):
        module = importlib.import_module(name)
        vars(module).update({each: getattr(module, each) for each in module.__all__})


def as_written(app, what, name, obj, options, lines: list[str]) -> None:
    """Docstrings here are plain text with `code`, doctests, indented formulas and lists of arguments: Sphinx is told
    which is which, and kept from reading more into it."""
    text = "\n".join(lines)
    lines[:] = [line for block in re.split(r"\n\s*\n", text) for line in (*_marked_up(block.splitlines()), "")]


def _marked_up(block: list[str]) -> list[str]:
    if all(line.startswith("    ") for line in block):
        return ["::", "", *block]
    if block[0].startswith(">>>"):
        return block
    if any(line.startswith("    ") for line in block):  # name: meaning, its further lines indented
        return [_without_markup(line[2:] if line.startswith("    ") else f"- {line}") for line in block]
    return [_without_markup(line) for line in block]


def _without_markup(line: str) -> str:
    pieces = re.split(r"(`[^`]*`)", line)
    return "".join(piece if piece.startswith("`") else re.sub(r"([*|_\\])", r"\\\1", piece) for piece in pieces)


def offer_results(app, docname: str, source: list[str]) -> None:
    """Pages link to measured results outside this folder, as a Git host shows them; on the site they are downloads."""
    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+results/[^)]+\.md)\)", r"{download}`\1 <\2>`", source[0])


def setup(app) -> None:
    app.connect("source-read", offer_results)
    show_what_is_loaded_late()
    app.connect("autodoc-process-docstring", as_written)
