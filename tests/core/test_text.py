"""Text from untrusted sources."""

from dign.core.text import clean_text, escape_mathtext


def test_text_that_is_shown_has_no_control_characters():
    assert clean_text("a\x1b[31mb\n\u202ec") == "a [31mb c"
    assert clean_text("x" * 10_000) == "x" * 119 + "…"


def test_a_dollar_starts_no_formula():
    assert escape_mathtext("5 $ and $x^2$") == r"5 \$ and \$x^2\$"
