"""Signals are collected while training, and handled between two steps."""

import os
import signal
import threading

import pytest

from dign.training.interrupts import catch_signals


def test_the_first_signal_of_each_kind_is_collected_and_a_second_one_interrupts():
    before = signal.getsignal(signal.SIGTERM)
    with catch_signals() as received:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == [signal.SIGINT, signal.SIGTERM]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_in_another_thread_signals_are_left_alone():
    found = []

    def work():
        with catch_signals() as received:
            found.append(list(received))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [[]]
