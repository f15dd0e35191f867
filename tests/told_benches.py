"""What a small bench found, made up: for the tests of its tables and pages."""

from etips.results.bench_result import Bench, BenchRow, BenchStanding

ROWS = (
    BenchRow("owl", "ours", "first", 1, 0.4, 0.0, 0.0, 0.41, {"reliable": 1}, processor=2.0),
    BenchRow("lightgbm", "peer", "behind", 1, 0.5, 0.1, 0.01, 0.3, {"doubtful": 1}, memory=300.0),
    BenchRow("etips", "ours", "failed", 0, failed="<b>why</b>"),
)
STANDING = BenchStanding(
    *("clinic-usual", "a clinic", "risk", 100, 50),
    clinicians=0.5,
    best=0.3,
    clinicians_stay=None,
    rows=ROWS,
    first="owl",
    best_of_ours="owl",
    ours_level=True,
)
NAMES = {"owl": "OWL", "lightgbm": "LightGBM", "etips": "etIPS"}
BENCH = Bench("A small run.", False, 1, NAMES, NAMES, (STANDING,), (), {"cores": 2}, ("obp-ipw",))
