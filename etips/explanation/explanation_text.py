"""Parts of an explanation as lines of text."""

from collections.abc import Iterator, Sequence

from etips.data.schema import Schema
from etips.disclosure import FEW
from etips.explanation.attribution import Attribution
from etips.explanation.global_attribution import GlobalAttribution
from etips.explanation.measure_next import Measurement
from etips.explanation.similar import SimilarDecisions
from etips.explanation.stay_explanation import DecisionExplanation, StayExplanation
from etips.explanation.tree_report import LeafReport, TreeReport

_STRONGEST = 4  # columns that are named on either side
_ROWS = 15  # columns of a list


def stay_lines(stay: StayExplanation) -> list[str]:
    """A stay, decision by decision."""
    told = [f"  {line}" for own in stay.decisions for line in _decision(own, stay.schema)]
    return [f"stay {stay.stay}", *told]


def _decision(own: DecisionExplanation, schema: Schema) -> Iterator[str]:
    chance = own.probabilities
    if own.abstained:
        told = "abstains: no action has enough support; wait, or do as clinicians do"
    else:
        told = f"recommends {schema.action_name(own.recommended)} ({chance[own.recommended]:.0%})"
        told += ", wavering" if own.wavers else ""
    if own.logged is not None:
        told += f"; logged {schema.action_name(own.logged)} ({chance[own.logged]:.0%})"
    yield f"step {own.label}: {told}"
    if own.rule is not None:
        yield f"  {own.rule}"
    if own.attribution is not None:
        yield from (f"  {line}" for line in _why(own.attribution, schema))
    if own.similar is not None:
        yield f"  {similar_words(own.similar, schema)}"
    if own.measure:
        yield f"  measure next: {'; '.join(measure_words(one) for one in own.measure)}"


def _why(own: Attribution, schema: Schema) -> Iterator[str]:
    sums = own.by_column()
    for word, sign in (("for", 1), ("against", -1)):
        chosen = [(name, value) for name, value in sums.items() if sign * value > 0][:_STRONGEST]
        if chosen:
            told = ", ".join(f"{name} {value:+.2g}" for name, value in chosen)
            action, other = schema.action_name(own.action), schema.action_name(own.against)
            yield f"{word} {action}, over {other}: {told}"
    if own.groups:
        told = ", ".join(f"{name} {value:+.2g}" for name, value in own.by_group().items())
        yield f"by organ system: {told}"
    if not own.complete:
        yield f"sums are off by {own.completeness_error:.0%}: take them with care"


def similar_words(own: SimilarDecisions, schema: Schema) -> str:
    """What was done for similar patients, in a sentence."""
    if own.people is None:
        return f"similar decisions: {FEW} people, so nothing is told of them"
    told = []
    for done in own.done[:_STRONGEST]:
        if done.share is None:
            continue
        loss = "" if done.loss is None else f", mean loss {done.loss:.2f}"
        told.append(f"{schema.action_name(done.action)} {done.share:.0%}{loss}")
    return f"similar decisions: {own.people} people (effective); {'; '.join(told) or 'few alike'}"


def measure_words(own: Measurement) -> str:
    """What a measurement might change, in a few words."""
    age = "never measured" if own.age is None else f"not new for {own.age} steps"
    return f"{own.column} ({age}) would change the answer for {own.changes:.0%} of likely values"


def overall_lines(own: GlobalAttribution) -> list[str]:
    """What the policy goes by on the whole."""
    lines = [f"what the policy goes by: {own.by}, mean size in {own.unit}"]
    if not any(column.mean > 0 for column in own.columns):
        return [*lines, "  no column moves it: it says the same of everybody"]
    for column in own.columns[:_ROWS]:
        limits = f"[{column.low:.3f}, {column.high:.3f}]"
        lines.append(f"  {column.name}: {column.mean:.3f} {limits}, {column.share:.0%}")
    if own.groups:
        told = ", ".join(f"{name} {share:.0%}" for name, share in own.groups.items())
        lines.append(f"  by organ system: {told}")
    if own.networks_agree is not None:
        lines.append(
            f"  its networks have {own.networks_agree:.0%} of the first ten columns in common"
        )
    return lines


def tree_lines(own: TreeReport) -> list[str]:
    """The policy as rules, with what the log says of them."""
    lines = ["the policy as rules", f"  {own.tree.sentence}"]
    for leaf in own.leaves:
        lines += [f"  {leaf.rule}", f"    {leaf_words(leaf)}"]
    if own.agreement is not None:
        lines.append(f"  rules and policy recommend the same at {own.agreement:.0%} of decisions")
    for method in own.methods:
        head = method.estimates[0]
        figures = _figures((head.risk, head.low, head.high))
        truth = "" if method.truth is None else f", in truth {method.truth:.4f}"
        sample = ", in sample" if method.in_sample else ""
        lines.append(f"  {method.name}: risk {figures} ({method.verdict}{sample}){truth}")
    lines.append(f"  judged on {own.judged}")
    return lines


def leaf_words(leaf: LeafReport) -> str:
    """What the log says of a rule."""
    if leaf.share is None:
        return "not shown: it would tell of a few people"
    told = [f"{leaf.share:.0%} of the decisions"]
    if leaf.agreement is not None:
        told.append(f"the policy says the same at {leaf.agreement:.0%} of them")
    if leaf.logged_loss is not None:
        told.append(f"mean logged loss {leaf.logged_loss:.3f}")
    if leaf.risk is not None:
        told.append(f"risk under the rule {_figures((leaf.risk, leaf.low, leaf.high))}")
    if leaf.verdict is not None:
        told.append(leaf.verdict)
    return ", ".join(told)


def _figures(values: Sequence[float | None]) -> str:
    risk, low, high = ("?" if value is None else f"{value:.4f}" for value in values)
    return f"{risk} [{low}, {high}]"
