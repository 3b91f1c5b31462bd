"""Write what README.md asks of the runs: differences of pairs of rows, each taken alone.

python results/tiny-imagenet-20/differences.py

In brackets the 95 % interval over seeds and images together, then the p-value; `dign report` has all pairs, corrected.
"""

import sys
from pathlib import Path

from dign.report.analysis.comparisons import interval_text
from dign.report.analysis.confidence_quantities import RAW
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA, MCA_N
from dign.report.analysis.significance import compare_groups
from dign.report.analysis.study import make_study, spell_out
from dign.report.analysis.tables import signed
from dign.report.load import load_runs

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from result_tables import NOTHING, fill, format_table  # noqa: E402

MARK = "<!-- differences, made by differences.py -->\n"
STRONG, MILD = "DiGN (sigma_max 0.6)", "DiGN (sigma_max 0.2)"
PAIRS = (
    (STRONG, MILD),
    (STRONG, "DiGN w/o CR (sigma_max 0.6)"),
    (MILD, "DiGN w/o CR (sigma_max 0.2)"),
    (STRONG, "Standard"),
    (MILD, "Standard"),
    (STRONG, "AugMix"),
)
QUANTITIES = {
    "clean": CLEAN_ACCURACY,
    "under noise (mCA-N)": MCA_N,
    "under all corruptions (mCA)": MCA,
    "ECE-N as trained": RAW["noise", "ece"],
}


def main() -> None:
    fill(HERE / "README.md", {MARK: table()})


def table() -> str:
    groups = {spell_out(group): group for group in make_study(*load_runs([HERE / "runs"])).groups}
    rows = []
    for first, second in PAIRS:
        found = [compare_groups(groups[first], groups[second], quantity) for quantity in QUANTITIES.values()]
        cells = [f"{signed(each.mean)} {interval_text(each)}, {each.p_text}" if each else NOTHING for each in found]
        rows.append((f"{first} against {second}", *cells))
    return format_table(("", *QUANTITIES), rows)


if __name__ == "__main__":
    main()
