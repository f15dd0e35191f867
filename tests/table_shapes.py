"""Tables as hospitals hold them, small and made up, for the commands of docs/tables.md."""

import csv
import gzip

import numpy as np
import polars as pl

BASELINE = (
    *("HOSPNUM", "RDELAY", "RCONSC", "SEX", "AGE", "RSLEEP", "RATRIAL", "RCT", "RVISINF", "RHEP24"),
    *("RASP3", "RSBP", "RDEF1", "RDEF2", "STYPE", "RDATE", "HOURLOCAL", "MINLOCAL", "DAYLOCAL"),
)
LATER = ("DASP14", "DALIVE", "DDEAD", "DPLACE", "FDEAD", "FRECOVER", "DIED", "OCCODE", "DEAD1")


def write_shapes(folder, n=500, seed=0):
    """All tables of the page, each under the name that it has there."""
    rng = np.random.default_rng(seed)
    stroke_trial(folder / "IST.csv.gz", rng, n)
    ward(rng, 90).write_csv(folder / "ward.csv")
    doses(rng, 90).write_csv(folder / "doses.csv")
    codes(rng, n).write_csv(folder / "codes.csv")
    station(folder / "station.csv", rng, 90)
    trial(rng, n).write_csv(folder / "trial.csv")
    sites(rng, n).write_csv(folder / "sites.csv")


def stroke_trial(place, rng, n):
    """One row a patient; treatments, yes, no and gaps as the published file writes them."""

    def some(values, odds=None):
        return rng.choice(values, n, p=odds)

    age, awake = rng.integers(45, 95, n), some(["F", "D", "U"], [0.75, 0.2, 0.05])
    dead = rng.random(n) < 0.1 + 0.004 * (age - 45) + 0.2 * (awake != "F")
    yes_no = ["Y", "N"]
    columns = {
        **dict(zip(BASELINE, [some(yes_no) for _ in BASELINE], strict=True)),
        "HOSPNUM": rng.integers(1, 60, n),
        "RDELAY": rng.integers(1, 48, n),
        "RCONSC": awake,
        "SEX": some(["M", "F"]),
        "AGE": age,
        "RATRIAL": some(["Y", "N", ""], [0.15, 0.8, 0.05]),
        "RASP3": some(["Y", "N", ""], [0.2, 0.75, 0.05]),
        "RSBP": rng.integers(100, 220, n),
        "STYPE": some(["PACS", "LACS", "POCS", "TACS", "OTH"]),
        "RDATE": np.array([f"sty-{i % 90}" for i in range(n)]),
        "HOURLOCAL": rng.integers(0, 24, n),
        "MINLOCAL": rng.integers(0, 60, n),
        "DAYLOCAL": rng.integers(1, 8, n),
        "RXASP": some(yes_no),
        "RXHEP": some(["N", "L", "M"], [0.5, 0.25, 0.25]),
        **dict(zip(LATER, [some(yes_no) for _ in LATER], strict=True)),
        "DIED": dead.astype(int),
        "DDEAD": np.where(dead, "Y", "N"),
        "FDEAD": np.where(dead, "Y", "N"),
        "OCCODE": np.where(dead, 1, rng.integers(2, 5, n)),
        "DEAD1": (dead & (rng.random(n) < 0.5)).astype(int),
    }
    with gzip.open(place, "wt", encoding="latin-1", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def _stays(rng, n):
    lengths = rng.integers(5, 9, n)
    return np.repeat(np.arange(1001, 1001 + n), lengths), lengths


def ward(rng, n):
    """A row whenever somebody charted something, with gaps."""
    stay, lengths = _stays(rng, n)
    start = np.repeat(rng.integers(0, 300 * 24, n) * 60, lengths)
    minute = start + np.concatenate([np.cumsum(rng.integers(40, 400, m)) for m in lengths])
    pressure = rng.normal(70, 10, stay.size).round(1)
    given = rng.random(stay.size) < np.where(pressure < 65, 0.7, 0.2)
    worse = rng.random(stay.size) < np.where((pressure < 65) & ~given, 0.6, 0.3)
    charted = np.datetime64("2024-01-01") + minute.astype("timedelta64[m]")
    return pl.DataFrame(
        {
            "admission": stay,
            "charted": np.datetime_as_string(charted, unit="m"),
            "map": pressure,
            "lactate": [None if gap else v for gap, v in _gaps(rng, rng.gamma(2, 1, stay.size))],
            "urine": rng.integers(0, 120, stay.size),
            "vasopressor": np.where(given, "yes", "no"),
            "worse": worse.astype(int),
        }
    )


def _gaps(rng, values):
    return zip(rng.random(values.size) < 0.3, values.round(2).tolist(), strict=True)


def doses(rng, n):
    """Two doses in their units, 0 where none was given."""
    stay, lengths = _stays(rng, n)
    size = stay.size
    return pl.DataFrame(
        {
            "stay": stay,
            "hour": np.concatenate([4 * np.arange(m) for m in lengths]),
            "map": rng.normal(70, 10, size).round(1),
            "fluid_ml": np.where(rng.random(size) < 0.7, rng.gamma(2, 200, size).round(), 0),
            "vaso": np.where(rng.random(size) < 0.5, rng.gamma(2, 0.1, size).round(3), 0),
            "worse": rng.integers(0, 2, size),
        }
    )


def codes(rng, n):
    """A strength in milligrams that takes three values."""
    age = rng.integers(30, 90, n)
    return pl.DataFrame(
        {
            "age": age,
            "crp": rng.gamma(2, 40, n).round(),
            "aspirin_mg": rng.choice([0, 100, 300], n),
            "died": (rng.random(n) < 0.1 + 0.004 * (age - 30)).astype(int),
        }
    )


def station(place, rng, n):
    """As a German ward exports it: semicolons, decimal commas, days first, latin-1."""
    stay, lengths = _stays(rng, n)
    lines = ["Fall;Zeit;Größe;MAP;Gabe;Schaden"]
    day = np.repeat(rng.integers(1, 29, n), lengths)
    hour = np.concatenate([3 * np.arange(m) for m in lengths])
    size = np.repeat(rng.integers(150, 195, n), lengths)
    for row in range(stay.size):
        pressure = f"{rng.normal(70, 10):.1f}".replace(".", ",")
        given, harm = rng.choice(["ja", "nein"]), rng.integers(0, 2)
        time = f"{day[row]:02}.03.2024 {hour[row]:02}:00"
        lines.append(f"{stay[row]};{time};{size[row]};{pressure};{given};{harm}")
    place.write_text("\n".join(lines) + "\n", encoding="latin-1")


def trial(rng, n):
    """A drug that the sick get, and that helps them."""
    severity = rng.normal(size=n).round(2)
    drug = rng.random(n) < 0.3 + 0.4 * (severity > 0)
    risk = 0.3 + np.where(severity > 0, 0.2 - 0.3 * drug, 0.1 * drug)
    return pl.DataFrame(
        {
            "severity": severity,
            "sex": rng.choice(["f", "m"], n),
            "drug": np.where(drug, "drug", "none"),
            "died": (rng.random(n) < risk).astype(int),
        }
    )


def sites(rng, n):
    """The same at two sites, one of which has the sicker patients."""
    return pl.concat(
        [
            trial(rng, n).with_columns(site=pl.lit("north")),
            trial(rng, n).with_columns(pl.col("severity") + 0.3, site=pl.lit("south")),
        ]
    ).select("site", "severity", "sex", "drug", "died")
