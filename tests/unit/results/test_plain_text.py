"""Results as text."""

from dataclasses import replace

from etips.results.estimate_result import EstimateResult
from etips.results.method_result import DataSummary, GainResult, MethodResult
from etips.results.plain_text import describe

HEAD = EstimateResult("sndr", 0.5, 0.1, 0.3, None)
GAIN = GainResult(-0.1, 0.2, -0.3, 0.1, False, 0.4, False)
METHOD = MethodResult("p", (HEAD,), None, "doubtful", ("Few decisions carry it.",), None, GAIN)
DATA = DataSummary(30, 1234, 3, 0, mean_loss=0.6, one_decision=True)


def test_a_verdict_is_printed_with_its_reasons():
    assert describe("Results", (METHOD,), DATA) == (
        "Results on 1,234 decisions, mean logged loss 0.6000\n"
        "  p: no difference shown, doubtful\n"
        "    sndr 0.5000 [0.3000, ?]\n"
        "    against the clinicians -0.1000 [-0.3000, +0.1000]\n"
        "    why doubtful: Few decisions carry it."
    )


def test_what_is_hidden_is_a_question_mark():
    hidden = replace(DATA, n_decisions=None, mean_loss=None)
    method = replace(METHOD, gain=None, reasons=(), verdict="reliable")
    assert describe("Results", (method,), hidden) == (
        "Results on ? decisions\n  p: not known (reliable)\n    sndr 0.5000 [0.3000, ?]"
    )
