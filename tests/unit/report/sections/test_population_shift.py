"""The section on how data differ from those that a policy was learned on."""

from types import SimpleNamespace

from etips.report.page import environment
from etips.report.sections.population_shift import SECTION
from etips.results.shift_result import ActionShift, FeatureShift, ShiftResult

SHIFT = ShiftResult(
    policy="run",
    there={"cohort": "Sepsis-3 from MIMIC-III"},
    here={"cohort": "Sepsis-3 from MIMIC-IV"},
    features=(FeatureShift("SOFA", 0.5, 1.1), FeatureShift("<age>", -0.3, 0.9)),
    n_features=47,
    n_apart=2,
    unlike=None,
    actions=tuple(ActionShift(f"fluid {i}", 0.1, None, 0.05 * i) for i in range(10)),
    practice=0.2,
    log_loss_there=2.5,
    log_loss_here=2.1,
    loss_there=None,
    loss_here=0.424,
    distance="moved",
    sentences=("The two differ.",),
)


def test_without_a_shift_there_is_no_section():
    assert SECTION.make(SimpleNamespace(shift=None)) is None


def test_it_shows_features_actions_and_losses_side_by_side():
    context = SECTION.make(SimpleNamespace(shift=SHIFT))
    assert len(context["actions"]) == 8
    html = environment().get_template(SECTION.template).render(**context, present=set())
    for text in ("The two differ.", "MIMIC-IV", "SOFA", "0.424", "+0.50"):
        assert text in html
    assert "<age>" not in html
