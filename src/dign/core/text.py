"""Names that people chose, in figures."""


def escape_mathtext(text: str) -> str:
    """The text as it is: matplotlib would take a dollar for the start of a formula."""
    return text.replace("$", r"\$")
