"""The paper's claims are decided by the data."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dign.report.analysis.claims import (
    CLAIMS,
    FAILS,
    PARTLY,
    PASSES,
    TOO_FEW,
    UNMEASURED,
    UNSURE,
    Claim,
    check_claim,
    check_claims,
    claims_table,
)
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA_N
from dign.report.analysis.study import Group, make_study
from dign.report.load import load_runs
from dign.report.make import study_of


def verdicts(study):
    return {row.label: row.cells[0].text for row in claims_table(study).rows}


def test_with_one_seed_no_claim_is_decided(demo_runs):
    assert set(verdicts(make_study(*load_runs([demo_runs]))).values()) == {TOO_FEW, UNMEASURED}


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


def test_where_no_method_differs_any_verdict_at_all_comes_in_five_reports_of_a_hundred():
    """All methods draw from one distribution: 1000 reports of all claims, with three and with five seeds."""
    generator = np.random.default_rng(0)
    titles = {claim.winner for claim in CLAIMS} | {title for claim in CLAIMS for title in claim.losers}
    keys = {quantity.key for claim in CLAIMS for quantity in claim.quantities}
    claims = [
        replace(
            claim,
            quantities=[replace(q, read=lambda run, key=q.key: run.values[key], images=None) for q in claim.quantities],
        )
        for claim in CLAIMS
    ]
    for seeds in (3, 5):
        decided = 0
        for _ in range(500):
            groups = [
                Group(title, title, "m", tuple(
                    SimpleNamespace(seed=seed, values={key: generator.normal() for key in keys})
                    for seed in range(seeds)
                ))
                for title in titles
            ]  # fmt: skip
            decided += any(verdict in (PASSES, FAILS, PARTLY) for verdict, _ in check_claims(claims, groups))
        assert decided <= 25 + 10, "5 % of 500, and two standard deviations"


def test_a_difference_that_is_not_significant_is_undecided_not_too_few_seeds(fake_run, tmp_path):
    for seed in range(3):
        fake_run(tmp_path / f"s{seed}", "Standard", seed)
        fake_run(tmp_path / f"t{seed}", "Standard", seed + 10, run={"title": "AugMix", "seed": seed})
    study = make_study(*load_runs([tmp_path]))
    assert check_claim(Claim("", "AugMix", ["Standard"], [MCA_N]), study.groups)[0] == UNSURE
