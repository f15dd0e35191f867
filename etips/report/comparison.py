"""Whether a policy is better than the clinicians, in the words of page, table and terminal.

"Better" without more is said of a whole stay only: where a stay is one decision, or where somebody
looked at whole stays and found a gain there too.
"""

from etips.results.results import DataSummary, MethodResult
from etips.results.whole_stay_result import ONE_DECISION as ONE_DECISION

NOT_LOOKED = "the whole stay was not looked at (--whole-stay)"
DISAGREES = "the whole-stay estimate does not agree"


def better_words(method: MethodResult, data: DataSummary) -> str:
    """What may be said of a policy against the clinicians; its verdict has a say."""
    gain = method.gain
    if gain is None or gain.better is None:
        return "not known to be better"
    at_one = bool(gain.better or gain.better_at_one_decision)
    if not at_one:
        return "not shown to be better"
    where = "" if data.one_decision or gain.better else " at one decision"
    if method.in_sample:
        return f"better{where} on stays it learned from, which shows nothing"
    if method.verdict != "reliable":
        return f"better{where} only were it not {method.verdict}"
    doubt = doubt_of(method, data)
    return f"better{where}; {doubt}" if doubt else f"better{where}"


def doubt_of(method: MethodResult, data: DataSummary) -> str | None:
    """Why a gain at one decision is not called a gain, or a gain over the stay not a sure one."""
    whole = method.whole_stay
    if data.one_decision:
        return None
    if whole is None:
        return NOT_LOOKED
    if method.gain is None or not method.gain.better:
        return DISAGREES
    return None if whole.verdict == "reliable" else f"over the whole stay it is {whole.verdict}"
