"""Balance: whether weighted patients look like all patients, in prognosis and by feature."""

from etips.report.maps import balance_plot
from etips.report.section import Section
from etips.results.exhibits import Absent
from etips.results.results import Results


def _make(results: Results) -> dict[str, object] | None:
    balance = None if results.exhibits is None else results.exhibits.balance
    absent = balance.absent if isinstance(balance, Absent) else None
    prognosis = None if results.headline is None else results.headline.prognosis
    if balance is None and (prognosis is None or not prognosis.sentence):
        return None
    if balance is None or isinstance(balance, Absent):
        return {"balance": None, "absent": absent, "prognosis": prognosis}
    figure = balance_plot(balance.features, balance.threshold)
    notes = results.methods[0].notes if results.methods else None
    balancing = None if notes is None else notes.get("balance")
    return {
        "balance": balance,
        "absent": None,
        "figure": figure,
        "balancing": balancing,
        "prognosis": prognosis,
    }


SECTION = Section("balance", "Balance", "balance.html", _make)
