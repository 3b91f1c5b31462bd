"""`dign list`."""

import json


def test_lists_name_what_there_is(dign_command):
    code, out, _ = dign_command("list", "methods")
    assert code == 0 and all(word in out for word in ("standard", "rse", "dign-without-cr", "--sigma-max"))
    models = dign_command("list", "models")[1]
    assert all(name in models for name in ("densenet121", "timm:NAME", "dign[timm]", "hub:DIR"))
    assert "tiny-imagenet" in dign_command("list", "data")[1]
    corruptions = dign_command("list", "corruptions")[1]
    assert all(word in corruptions for word in ("speckle_noise", "imagenet-c-bar", "plasma_noise"))


def test_lists_as_json(dign_command):
    methods = json.loads(dign_command("list", "methods", "--json")[1])
    assert methods["dign"]["settings"]["samples"] == 3 and methods["dign"]["cost"]["standard_steps"] == 4
    assert "resnet18" in json.loads(dign_command("list", "models", "--json")[1])
    assert "cifar10" in json.loads(dign_command("list", "data", "--json")[1])
    assert "fog" in json.loads(dign_command("list", "corruptions", "--json")[1])["weather"]
    assert "ripple" in json.loads(dign_command("list", "corruptions", "--json")[1])["c-bar"]


def test_lines_of_options_break_between_options(dign_command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = dign_command("list", "methods")[1].splitlines()
    options = [line for line in lines if line.startswith("    -")]
    assert len(options) > 30 and max(map(len, options)) <= 80
    assert all(word.startswith("--") and " " in word for line in options for word in line.strip().split("  "))
    assert "    --width 3  --depth none  --severity none  --alpha 1" in lines
    assert "    --operations autocontrast,equalize,... (9 in all)  --weight 12" in lines
