"""Text from untrusted sources."""

from dign.core.text import clean_text, escape_mathtext, wrap_words


def test_text_that_is_shown_has_no_control_characters():
    assert clean_text("a\x1b[31mb\n\u202ec") == "a [31mb c"
    assert clean_text("x" * 10_000) == "x" * 119 + "…"


def test_a_dollar_starts_no_formula():
    assert escape_mathtext("5 $ and $x^2$") == r"5 \$ and \$x^2\$"


def test_words_and_commands_in_backticks_are_never_broken():
    text = "first second `dign train --resume runs/a b` extraordinarily\n  indented line of words"
    wrapped = wrap_words(text, 18)
    assert wrapped.split() == text.split()
    assert "`dign train --resume runs/a b`" in wrapped.splitlines() and "extraordinarily" in wrapped.splitlines()
    assert "  indented line of" in wrapped.splitlines()
    assert wrap_words("short", 80) == "short" and wrap_words("", 80) == ""
