"""Messages fit the terminal, and stay one line elsewhere."""

import io

from rich.console import Console
from rich.table import Table

from dign.cli import messages

SENTENCE = "A sentence of several words, with a command: `dign evaluate runs/photos`."


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_lines_of_whole_words_and_a_file_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    for stream, lines in ((Terminal(), 3), (io.StringIO(), 1)):
        monkeypatch.setattr("sys.stderr", stream)
        messages.say(SENTENCE)
        shown = stream.getvalue().splitlines()
        assert len(shown) == lines and " ".join(shown) == SENTENCE


def test_a_console_gets_the_same_and_marks_are_text():
    console = Console(file=io.StringIO(), width=30, force_terminal=True, color_system=None)
    messages.say_on(console, SENTENCE + " [bold]")
    assert max(map(len, console.file.getvalue().splitlines())) <= 30
    assert "[bold]" in console.file.getvalue()


def test_a_table_is_as_wide_as_the_terminal_and_whole_in_a_file(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    for stream, lines in ((Terminal(), 3), (io.StringIO(), 1)):
        monkeypatch.setattr("sys.stderr", stream)
        table = Table(box=None, show_header=False)
        table.add_column(overflow="fold")
        table.add_row("x" * 70)
        messages.make_table_console(err=True).print(table)
        assert len(stream.getvalue().splitlines()) == lines
