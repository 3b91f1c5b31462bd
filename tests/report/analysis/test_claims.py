"""The paper's claims are decided by the data."""

import pytest

from dign.report.analysis.claims import (
    CLAIMS,
    FAILS,
    PARTLY,
    PASSES,
    UNMEASURED,
    UNSURE,
    Claim,
    check_claim,
    claims_table,
)
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA_N
from dign.report.analysis.study import make_study
from dign.report.load import load_runs
from dign.report.make import study_of


def verdicts(study):
    return {row.label: row.cells[0].text for row in claims_table(study).rows}


def test_with_one_seed_no_claim_is_decided(demo_runs):
    assert set(verdicts(make_study(*load_runs([demo_runs]))).values()) == {UNSURE, UNMEASURED}


def test_claims_are_decided_by_the_data_in_both_directions(fake_run, tmp_path):
    for seed in range(3):
        fake_run(tmp_path / f"s{seed}", "Standard", seed, images=2000)
        fake_run(tmp_path / f"d{seed}", "DiGN", seed, images=2000)
    text = "DiGN is more accurate under noise than Standard"
    study = make_study(*load_runs([tmp_path]))
    assert verdicts(study)[text] == PASSES
    reverse = Claim("", "Standard", ["DiGN"], [MCA_N])
    assert check_claim(reverse, study.groups)[0] == FAILS
    assert check_claim(Claim("", "DiGN", ["AugMix"], [MCA_N]), study.groups) == (UNMEASURED, [])
    assert check_claim(Claim("", "DiGN", ["Standard"], [MCA_N, CLEAN_ACCURACY]), study.groups)[0] != PASSES


def test_a_claim_does_not_pass_where_some_of_its_methods_were_not_run_but_may_fail(fake_run, tmp_path):
    for seed in range(3):
        fake_run(tmp_path / f"s{seed}", "Standard", seed, images=2000)
        fake_run(tmp_path / f"d{seed}", "DiGN", seed, images=2000)
    study = make_study(*load_runs([tmp_path]))
    assert verdicts(study)["DiGN is more accurate under noise than every other method"] == PARTLY
    assert check_claim(Claim("", "Standard", ["DiGN", "AugMix"], [MCA_N]), study.groups)[0] == FAILS


def test_a_claim_about_many_methods_says_how_many_were_run(demo_runs):
    row = claims_table(make_study(*load_runs([demo_runs]))).rows[0]
    assert "only 3 of 8 other methods were run" in row.cells[1].text


@pytest.mark.slow
def test_the_paper_s_own_tables_are_quoted_beside_its_claims(grid_runs):
    rows = {row.label: row for row in claims_table(study_of([grid_runs])).rows}
    assert rows["DiGN is more accurate under noise than AugMix"].cells[2].text == "mCA-N +5.9 against AugMix"
    assert len(rows) == len(CLAIMS)
