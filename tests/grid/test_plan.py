"""What a grid file says, and what it cannot say."""

import pytest

from dign.core.errors import UserError
from dign.grid.plan import make_plan, read_plan

PAPER = {"data": "cifar10", "method": ["standard", "dign"], "seed": [0, 1, 2]}


def names(values):
    return [run.name for run in make_plan(values).runs]


def test_every_combination_once_in_the_order_of_the_file():
    assert names({**PAPER, "data": ["cifar10", "cifar100"], "seed": [0, 1]}) == [
        "cifar10-resnet18-standard-seed0", "cifar10-resnet18-standard-seed1",
        "cifar10-resnet18-dign-seed0", "cifar10-resnet18-dign-seed1",
        "cifar100-resnet18-standard-seed0", "cifar100-resnet18-standard-seed1",
        "cifar100-resnet18-dign-seed0", "cifar100-resnet18-dign-seed1",
    ]  # fmt: skip


def test_a_run_without_lists_is_a_grid_of_one():
    (run,) = make_plan({"data": "digits"}).runs
    assert run.name == "digits-tinynet-dign-seed0", "the preset of digits says the model"


def test_lists_of_method_settings_are_a_sensitivity_study():
    plan = make_plan({**PAPER, "seed": 0, "settings": {"dign": {"weight": [0.1, 1], "samples": [1, 3]}}})
    assert [run.name for run in plan.runs] == [
        "cifar10-resnet18-standard-seed0",
        "cifar10-resnet18-dign-weight=0.1-samples=1-seed0",
        "cifar10-resnet18-dign-weight=0.1-samples=3-seed0",
        "cifar10-resnet18-dign-weight=1-samples=1-seed0",
        "cifar10-resnet18-dign-weight=1-samples=3-seed0",
    ]
    assert plan.runs[-1].axes == {"dign.weight": 1, "dign.samples": 3}
    assert plan.runs[-1].config.settings == {"dign": {"weight": 1, "samples": 3}}


def test_equal_settings_of_two_methods_have_their_owners_in_the_name():
    settings = {"dign": {"weight": [0.1]}, "augmix": {"weight": [6.0]}}
    assert names({"data": "cifar10", "method": "dign+augmix", "settings": settings}) == [
        "cifar10-resnet18-dign+augmix-dign.weight=0.1-augmix.weight=6.0-seed0"
    ]


def test_a_longer_list_keeps_the_names_of_the_runs_that_were_there():
    before = names({**PAPER, "lr": [0.1]})
    assert set(before) < set(names({**PAPER, "lr": [0.05, 0.1], "method": ["at", "standard", "dign"]}))


def test_a_setting_that_is_itself_a_list_needs_a_list_of_lists_to_vary():
    def runs(operations):
        values = {"data": "cifar10", "method": "augmix", "settings": {"augmix": {"operations": operations}}}
        return [run.config.settings["augmix"]["operations"] for run in make_plan(values).runs]

    assert runs(["rotate", "posterize"]) == [["rotate", "posterize"]]
    assert runs([["rotate"], ["posterize"]]) == [["rotate"], ["posterize"]]


def test_tables_for_a_method_a_model_or_a_data_set():
    plan = make_plan(
        {
            "data": ["cifar10", "cifar100"],
            "model": ["resnet18", "wide_resnet18"],
            "method": ["standard", "dign", "dign+augmix"],
            "epochs": 7,
            "settings": {"dign": {"weight": 0.2}},
            "for": {
                "wide_resnet18": {"batch_size": 128},
                "cifar100": {"epochs": 9, "evaluate": {"severity": 2}},
                "dign+augmix": {"settings": {"dign": {"weight": 0.5}}},
            },
            "evaluate": {"only": ["noise"], "severity": "1-5"},
        }
    )
    by_name = {run.name.removesuffix("-seed0"): run for run in plan.runs}
    assert by_name["cifar10-wide_resnet18-dign"].config.batch_size == 128
    assert by_name["cifar10-resnet18-dign"].config.batch_size == 512
    assert by_name["cifar100-resnet18-dign"].config.epochs == 9
    assert by_name["cifar10-resnet18-dign"].config.epochs == 7
    assert by_name["cifar10-resnet18-dign"].config.settings == {"dign": {"weight": 0.2}}
    assert by_name["cifar10-resnet18-dign+augmix"].config.settings == {"dign": {"weight": 0.5}}
    assert by_name["cifar10-resnet18-standard"].config.settings == {}
    assert by_name["cifar100-resnet18-standard"].evaluation.severity == (2,)
    assert by_name["cifar10-resnet18-standard"].evaluation.severity == (1, 2, 3, 4, 5)
    assert len(by_name["cifar10-resnet18-standard"].evaluation.corruptions) == 4


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({**PAPER, "sed": 1}, "Unknown key in a grid file 'sed'. Did you mean 'seed'?"),
        ({**PAPER, "method": "dig"}, "Unknown method 'dig'. Did you mean 'dign'?"),
        ({**PAPER, "model": ["resnet81"]}, "Did you mean 'resnet18'?"),
        ({**PAPER, "data": "cifar11"}, "Did you mean 'cifar10'?"),
        ({**PAPER, "settings": {"dign": {"sigma": 1}}}, "Unknown setting of dign 'sigma'. Did you mean 'sigma_max'?"),
        ({**PAPER, "settings": {"augmix": {"weight": 1}}}, "Unknown method of this grid in [settings] 'augmix'"),
        ({**PAPER, "for": {"digm": {"lr": 1}}}, "Did you mean 'dign'?"),
        ({**PAPER, "for": {"dign": {"epoch": 1}}}, "Unknown key in [for.dign] 'epoch'. Did you mean 'epochs'?"),
        ({**PAPER, "for": {"dign": {"model": "fastnet"}}}, "cannot set model"),
        ({**PAPER, "evaluate": {"onyl": "noise"}}, "Unknown key in [evaluate] 'onyl'. Did you mean 'only'?"),
        ({**PAPER, "evaluate": {"only": "nosie"}}, "Did you mean 'noise'?"),
        ({**PAPER, "evaluate": {"severity": 6}}, "invalid severity"),
        ({**PAPER, "evaluate": {"severity": [1.5]}}, "severity must be"),
        ({**PAPER, "evaluate": {"profile": "cifra"}}, "Did you mean 'cifar'?"),
        ({**PAPER, "evaluate": {"profile": ["cifar"]}}, "profile must be text"),
        ({**PAPER, "evaluate": {"only": 3}}, "only must be"),
        ({**PAPER, "evaluate": {"temperature": 1.5}}, "temperature must be"),
        ({**PAPER, "evaluate": {"temperature": True, "split": "validation"}}, "fitted on the validation split"),
        ({**PAPER, "evaluate": 3}, "[evaluate] must be a table"),
        ({**PAPER, "settings": [1]}, "[settings] must be a table"),
        ({**PAPER, "epochs": {"a": 1}}, "epochs must be a value"),
        ({**PAPER, "epochs": [[1, 2]]}, "epochs must be a whole number"),
        ({**PAPER, "epochs": []}, "at least one value"),
        ({**PAPER, "seed": [1, 1]}, "names the same thing twice"),
        ({**PAPER, "preset": ["laptop", 3]}, "preset must be a name"),
        ({**PAPER, "preset": "labtop"}, "Did you mean 'laptop'?"),
        ({**PAPER, "data": [["cifar10"]]}, "data must be a name"),
        ({**PAPER, "threads": 0}, "threads must be"),
        ({**PAPER, "devices": 2}, "leave out devices and nodes"),
        ({**PAPER, "seed": list(range(6000))}, "more than 10000"),
        ({"method": "dign"}, "A grid needs data"),
        (
            {"data": "folder:photos", "size": 128, "for": {"fastnet": {"lr": 0.123}}},
            "[for.fastnet] would not apply, since the file does not name the model of these runs: add model =",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(values, sentence):
    with pytest.raises(UserError) as error:
        make_plan(values)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_an_error_names_the_file(tmp_path):
    file = tmp_path / "grid.toml"
    file.write_text('data = "cifar10"\nmetod = "dign"\n')
    with pytest.raises(UserError, match=r"grid.toml: Unknown key .* Did you mean 'method'\?"):
        read_plan(file)


def test_only_takes_patterns_and_parts_of_names():
    plan = make_plan(PAPER)
    assert [run.name for run in plan.select(["*-dign-*"]).runs] == [f"cifar10-resnet18-dign-seed{s}" for s in range(3)]
    assert [run.name for run in plan.select(["seed1"]).runs] == [
        "cifar10-resnet18-standard-seed1",
        "cifar10-resnet18-dign-seed1",
    ]
    assert plan.select([]) is plan
    with pytest.raises(UserError, match="No run matches augmix"):
        plan.select(["augmix"])


def test_names_are_safe_for_shells_and_file_systems(tmp_path):
    (tmp_path / "my photos; rm").mkdir()
    (run,) = make_plan({"data": f"folder:{tmp_path}/my photos; rm", "model": "timm:resnet18.a1"}).runs
    assert not set(run.name) & set(" /;:'\"$&|<>*?\\")
    assert not run.name.startswith(("-", "."))
