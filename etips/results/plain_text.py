"""Results as a few lines of text: what was found of each policy, how sure that is, and why."""

from collections.abc import Iterable, Iterator

from etips.results.conclusions import conclude
from etips.results.method_result import DataSummary, MethodResult


def describe(title: str, methods: Iterable[MethodResult], data: DataSummary) -> str:
    """The lines that Python prints of results.

    Args:
        title: What they are.
        methods: The policies.
        data: What they were judged on.
    """
    loss = "" if data.mean_loss is None else f", mean logged loss {data.mean_loss:.4f}"
    lines = [f"{title} on {_shown(data.n_decisions, ',')} decisions{loss}"]
    for method in methods:
        lines += _lines(method, data)
    return "\n".join(lines)


def _lines(method: MethodResult, data: DataSummary) -> Iterator[str]:
    words = conclude(method, data).words
    verdict = method.verdict or "no verdict"
    yield f"  {method.name}: {words if verdict in words else f'{words} ({verdict})'}"
    for estimate in method.estimates[:1]:
        limits = f"[{_shown(estimate.low)}, {_shown(estimate.high)}]"
        yield f"    {estimate.estimator} {_shown(estimate.risk)} {limits}"
    gain = method.gain
    if gain is not None and gain.difference is not None:
        limits = f"[{_shown(gain.low, '+.4f')}, {_shown(gain.high, '+.4f')}]"
        yield f"    against the clinicians {gain.difference:+.4f} {limits}"
    for reason in method.reasons:
        yield f"    why {verdict}: {reason}"


def _shown(value: float | None, form: str = ".4f") -> str:
    return "?" if value is None else format(value, form)
