"""What a loss is, in a sentence for a reader: from the column it came from, or the data's words."""

import numpy as np

from etips.data.decisions import Floats
from etips.data.intake.recipe import Outcome
from etips.data.schema import Schema

_RULES = {
    "as_it_is": "column {column} as it stands",
    "minus": "column {column} with its sign turned, since more of it is better",
    "one_minus": "1 minus column {column}, since more of it is better",
}


def tell_loss(schema: Schema, losses: Floats) -> str:
    """What the loss is, and what a risk then says.

    Args:
        schema: For the column, and how it was read.
        losses: Of the logged actions, shape (n_decisions,).
    """
    own = schema.provenance.get("loss")
    if own:
        what = f"The loss, in the words of the data: {own.rstrip('.')}."
    else:
        outcome = Outcome() if schema.recipe is None else schema.recipe.outcome
        rule = _RULES[outcome.rule]
        if outcome.words:
            loss = 0 if outcome.rule == "one_minus" else 1
            rule = f"{loss} where column {{column}} says {' or '.join(outcome.words)}"
        what = f"The loss is {rule.format(column=schema.roles.loss)}; less is better."
    if np.isin(losses, (0, 1)).all():
        share = "the share of decisions followed by a loss of 1"
        return f"{what} It is 0 or 1, so that the risk is {share}."
    return f"{what} The risk is its mean after a decision."
