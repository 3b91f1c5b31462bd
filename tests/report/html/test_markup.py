"""SVG elements: text stays text."""

from markupsafe import Markup

from dign.report.html.markup import join, tag


def test_text_is_escaped_and_markup_is_not():
    assert tag("text", "<b>", Markup("<i></i>"), title='a"b') == '<text title="a&#34;b">&lt;b&gt;<i></i></text>'
    assert join(["a", None, ("<", 3)]) == "a&lt;3"
    assert tag("line", x1=1.0, x2=0.3333, stroke_width=2, id=None) == '<line x1="1" x2="0.33" stroke-width="2"/>'
