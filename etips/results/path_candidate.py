"""A candidate of a policy's path, as results show it: what it is, how it was judged."""

from collections.abc import Sequence
from dataclasses import dataclass

TRANSLATED = "translated"
"""The form of the paper's policies: trained with a translation alone."""


@dataclass(frozen=True)
class PathCandidate:
    """One candidate of a translation path.

    Args:
        translation: It was trained with; None for one that was trained without, or not at all.
        action: The one action of a constant policy.
        risk: SNIPS, or its doubly robust form where the learner predicts losses.
        std_error: Of the risk, by patient.
        matching_factor: Mean weight, 1 in expectation.
        effective_size: Effective number of decisions.
        chosen: Whether it became the policy.
        sound: Whether its risk could be believed enough to choose by.
        acts: Whether it takes its likeliest action or draws; None where nobody wrote it down.
        clinicians: Whether it is the clinicians themselves.
        corrected: Of the chosen one: risk of what choosing comes to, on patients it did not look
            at; the risk above is after selection. None where it is not known.
        corrected_error: Standard error of that.
        epochs: Most that one of its networks learned for; None where nothing was trained, or nobody
            counted.
        in_race: Whether it trained until it got no better on held-out stays; what dropped out of
            the race before is judged as it stood then.
        form: What it was trained by.
        strength: How much that smooths or fears; None where it has no such number.
    """

    translation: float | None
    action: int | None
    risk: float | None
    std_error: float | None
    matching_factor: float | None
    effective_size: float | None
    chosen: bool
    sound: bool
    acts: str | None = None
    clinicians: bool = False
    corrected: float | None = None
    corrected_error: float | None = None
    epochs: int | None = None
    in_race: bool = True
    form: str = TRANSLATED
    strength: float | None = None

    @property
    def called(self) -> str:
        """What it is, in words, where actions have no names."""
        return self.called_with(())

    def called_with(self, actions: Sequence[str]) -> str:
        """What it is, in words.

        Args:
            actions: What the actions are called, or none.
        """
        if self.clinicians:
            return "as the clinicians"
        if self.action is not None:
            named = self.action < len(actions)
            return f"always {actions[self.action] if named else f'action {self.action}'}"
        form = {"likeliest": ", likeliest action", "draws": ", drawn"}.get(self.acts or "", "")
        return self._trained_by() + form

    def _trained_by(self) -> str:
        if self.form == TRANSLATED and self.translation is None:
            return "trained"
        shift = None if self.translation is None else f"translation {self.translation:.3g}"
        strength = None if self.strength is None else f"{self.strength:g}"
        head = None if self.form == TRANSLATED else " ".join(filter(None, [self.form, strength]))
        return ", ".join(filter(None, [head, shift]))
