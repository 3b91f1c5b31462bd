"""The site: `make docs` builds it from this folder into build/docs, with warnings as errors."""

import re

import dign

project = "dign"
author = "the dign contributors"
copyright = f"2026, {author}"
version = release = dign.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # examples of JSON with comments in them

html_theme = "furo"
html_title = f"dign {dign.__version__}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]

highlight_language = "none"  # a block that names no language has none
default_role = "code"  # docstrings write code in single backticks
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
autodoc_typehints = "description"  # beside each parameter, not in the signature
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"


def offer_results(app, docname: str, source: list[str]) -> None:
    """Pages link to measured results outside this folder, as a Git host shows them; on the site they are downloads."""
    source[0] = re.sub(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+results/[^)]+\.md)\)", r"{download}`\1 <\2>`", source[0])


def setup(app) -> None:
    app.connect("source-read", offer_results)
