"""A progress bar appears on a terminal alone."""

import io
import sys

from dign.core.progress import TerminalBar, _amount


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_amounts_are_counts_or_megabytes():
    assert _amount("Decoding", 3, 7) == "3 of 7" and _amount("Reading", 3, None) == "3"
    assert _amount("Downloading, bytes", 3_000_000, 7_400_000) == "3 of 7 MB"
    assert _amount("Downloading, bytes", 3_000_000, None) == "3 MB"


def test_nothing_is_drawn_where_there_is_no_terminal(capsys):
    with TerminalBar() as report:
        report("Decoding", 1, 2)
    assert capsys.readouterr().err == ""


def test_a_remark_is_printed_once_and_a_bar_names_its_work(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with TerminalBar() as report:
        report("Waiting for another process", 0, None)
        report("Waiting for another process", 0, None)
        report("Decoding", 1, 2)
    with TerminalBar(delay=3600.0) as report:
        report("Comparing", 1, 2)
    assert "Comparing" not in terminal.getvalue()
    assert terminal.getvalue().count("Waiting for another process") == 1 and "Decoding" in terminal.getvalue()
