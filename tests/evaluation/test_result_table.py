"""Results as a table of text."""


def test_it_prints_as_a_table(results):
    lines = str(results).splitlines()
    assert lines[0] == "DiGN (tinynet) on digits, 10 images"
    assert lines[3].split() == ["clean", "90.0", "15.0", "15.0", "0.0"]
    assert "fog" in str(results) and lines[-1].split() == ["fog", "-", "70.0", "70.0"]
    assert {len(line) for line in lines[2:8]} == {len(lines[2])}, "columns are aligned"


def test_a_mean_over_part_of_the_corruptions_is_not_called_mca(results):
    assert not results.complete and "mCA" not in str(results)
    assert "mean over shot_noise (1 corruption)" in str(results)
    assert "mean over shot_noise, fog (2 corruptions)" in str(results)
