"""One decision of one stay: its history, what was done, what is advised."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from etips.data.coded import Floats32
from etips.data.trajectories import Trajectories
from etips.serve.advice import Advice, Advisor
from etips.serve.fields import Field, Form, Value
from etips.serve.stay_list import StayList


@dataclass(frozen=True, eq=False)
class StayView:
    """A stay with the decision that is looked at.

    Args:
        advisor: The policy.
        form: Fields of the data.
        code: What the stay is called.
        stay: The stay alone.
        advice: At its decisions.
        at: Which of its decisions, from 0.
    """

    advisor: Advisor
    form: Form
    code: str
    stay: Trajectories
    advice: Advice
    at: int

    @classmethod
    def of(cls, advisor: Advisor, form: Form, stays: StayList, code: str, at: int) -> "StayView":
        """A decision of a listed stay; the last one where there are not so many."""
        number, places = stays.place[code], stays.decisions(code)
        at = min(max(at, 0), places.stop - places.start - 1)
        stay = stays.data.subset(slice(number, number + 1))
        return cls(advisor, form, code, stay, stays.advice.at(places), at)

    @property
    def n_decisions(self) -> int:
        """Decisions of the stay."""
        return len(self.advice.abstained)

    @cached_property
    def steps(self) -> list[int]:
        """Step of each decision."""
        return [int(step) for step in self.stay.decisions().step]

    @property
    def step(self) -> int:
        """Step of the decision."""
        return self.steps[self.at]

    @property
    def row(self) -> int:
        """The last row that the decision sees."""
        return self.step - self.stay.lag

    @property
    def abstained(self) -> bool:
        """Whether the policy leaves the decision to the clinicians."""
        return bool(self.advice.abstained[self.at])

    @property
    def advised(self) -> int:
        """The likeliest action."""
        return int(self.advice.advised[self.at])

    @property
    def logged(self) -> int | None:
        """What was done, if that is known."""
        return None if not self.stay.logged else int(self.stay.logged_action[self.at])

    @cached_property
    def features(self) -> Floats32:
        """Features of every step of the stay."""
        return np.asarray(self.stay.sequence[:], np.float32)

    def value(self, field: Field) -> Value:
        """What the decision sees last of a field of a step."""
        return field.read(self.features[self.row])

    def fixed(self, field: Field) -> Value:
        """A field of the stay."""
        return field.read(self.stay.static[0])

    def changed(self, steps: Mapping[str, Value], static: Mapping[str, Value]) -> "StayView":
        """The same with other values at the last step that is seen, and the policy asked anew.

        Args:
            steps: Values by field of a step.
            static: Values by field of the stay.
        """
        rows, fixed = self.features.copy(), np.array(self.stay.static, np.float32)
        for field in self.form.sequence:
            if field.name in steps:
                field.write(rows[self.row], steps[field.name])
        for field in self.form.static:
            if field.name in static:
                field.write(fixed[0], static[field.name])
        stay = replace(self.stay, sequence=rows, static=fixed, truth=None)
        return replace(self, stay=stay, advice=self.advisor.ask(stay))
