"""`dign doctor`."""

import json

import pytest

import dign.doctor.self_test
from dign.doctor.self_test import Outcome


@pytest.fixture
def outcomes(monkeypatch):
    found = [Outcome("method/dign", True, 0.0, 0.01)]
    monkeypatch.setattr(dign.doctor.self_test, "run_self_test", lambda device: iter(found))
    return found


def test_it_describes_the_machine_and_says_how_many_tests_passed(dign_command, outcomes):
    code, out, _ = dign_command("doctor", "--device", "cpu")
    assert code == 0 and "1 of 1 tests passed on cpu" in out
    assert all(word in out for word in ("torch", "device cpu", "precision 32", "cache", "extras"))


def test_a_failure_is_named_and_is_an_exit_code(dign_command, outcomes):
    outcomes.append(Outcome("corruption/fog", False, 0.5, 0.01, "50 % of the pixels differ"))
    code, out, _ = dign_command("doctor", "--device", "cpu")
    assert code == 1 and "FAILED corruption/fog: 50 % of the pixels differ" in out and "1 of 2 tests passed" in out


def test_json_has_all_of_it(dign_command, outcomes):
    code, out, _ = dign_command("doctor", "--device", "cpu", "--json")
    document = json.loads(out)
    assert code == 0 and document["self_test"][0]["name"] == "method/dign" and "cpu" in document["devices"]


def test_a_device_that_is_not_there_is_one_sentence(dign_command):
    code, _, err = dign_command("doctor", "--device", "cuda:7")
    assert code == 2 and "There is no device 'cuda:7' here: this machine has" in err
