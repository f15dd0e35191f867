"""Which column plays which part, where the user did not say: by names, and by how the rows lie.

A guess comes with its reason. `read_table` and the commands never use one by themselves.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from etips.checks import role_words
from etips.checks.column_facts import ColumnFacts, Structure
from etips.checks.role_words import (
    EARLIER,
    ID_PARTS,
    PREFIXES,
    SURE,
    likeness,
    names_identifier,
    parts_of,
)
from etips.checks.suspects import Suspect, find_suspects
from etips.data.intake.outcomes import is_missing_mark, read_words, says_yes_no
from etips.data.tables.sources import Source
from etips.data.tables.table_spec import TableSpec
from etips.disclosure import LEAST_PEOPLE
from etips.errors import as_option

_MOST_WORDS = 10  # of an outcome
_LEAST_REPEATED = 3  # columns of one name and a number that look like measurements in time
_EITHER_WAY = {
    *("outcome", "y", "result", "results", "label", "target", "event", "ergebnis", "resultado"),
    *("esito", "issue", "endpoint", "status"),
}
"""Names that do not say whether 1 is good or bad."""
_VARIABLE = {
    *("variable", "item", "itemid", "item_name", "label", "parameter", "param", "paramcd"),
    *("test", "test_name", "measurement", "analyte", "observation", "merkmal", "name"),
}
_VALUE = {"value", "valuenum", "val", "result", "aval", "value_as_number", "wert", "valeur"}
_CODED = re.compile(r"(code|conceptid|status|cd|type|class|disposition|destination)$")
_NUMBERED = re.compile(r"^(.*?\D)(\d{1,3})$")
_MOST_ACTIONS = 40  # of a column that is taken for one of actions
_MOST_COMBINED = 3  # columns whose combination is taken for an action
_MOST_BOXES = 8  # the same of columns that say yes or no each
_MOST_CODES = 12  # whole numbers above which a column named like a dose holds amounts
_STEP_HOURS = (1, 2, 4, 6, 8, 12, 24)  # lengths of a step that are proposed
_FIRST_COLUMNS = 2  # among which an identifier without a known name is looked for
_FEWEST_IDS = 10  # values of such a column
_ROWS_PER_ID = 50  # at most, of an identifier without a known name


@dataclass(frozen=True)
class Guess:
    """A part that was not named, and what speaks for it."""

    field: str
    value: str | tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Guesses:
    """How a table would be read."""

    columns: TableSpec
    guesses: tuple[Guess, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    questions: tuple[str, ...] = ()


def guess_columns(source: Source, facts: Sequence[ColumnFacts], said: TableSpec) -> Guesses:
    """Guess what was not said."""
    guesser = _Guesser(source, facts, said)
    guesser.guess_stay()
    guesser.guess_step()
    guesser.guess_group()
    guesser.guess_by_name("propensity", role_words.PROPENSITY, _is_chance, "a propensity")
    guesser.guess_by_name("eligible", role_words.ELIGIBLE, _is_flag, "a mark of decisions")
    guesser.guess_outcome()
    guesser.guess_action()
    guesser.guess_static()
    return guesser.conclude()


class _Guesser:
    """Takes one part after the other; a column that has a part is not looked at again."""

    def __init__(self, source: Source, facts: Sequence[ColumnFacts], said: TableSpec) -> None:
        self.source, self.facts, self.columns = source, facts, said
        self.guesses: list[Guess] = []
        known = {own.name for own in facts if own.shape != "other"}
        self.structure = Structure(source, said.stay) if said.stay in known else None

    @property
    def free(self) -> list[ColumnFacts]:
        taken = set(part_columns(self.columns))
        return [own for own in self.facts if own.name not in taken and own.shape != "other"]

    @property
    def repeats(self) -> bool:
        return self.structure is not None and int(self.structure.lengths.max()) > 1

    def take(self, name: str, value: str | tuple[str, ...], reason: str) -> None:
        """Note a guess, and go on as if it had been said."""
        kept = value if isinstance(value, tuple) or name not in ("action", "dose") else (value,)
        self.columns = self.columns.but(**{name: kept})
        self.guesses.append(Guess(name, value, reason))

    def guess_by_name(
        self,
        name: str,
        words: tuple[str, ...],
        suits: Callable[[ColumnFacts], bool],
        what: str,
    ) -> None:
        """The column most like `words` of those that could play the part."""
        if getattr(self.columns, name) is None:
            best = _best((own for own in self.free if suits(own)), words)
            if best is not None:
                self.take(name, best.name, f"is named like {what}")

    def guess_stay(self) -> None:
        """The finest identifier; without one every row is a patient of its own."""
        if self.columns.stay is not None:
            return
        ids = [own for own in self.free if own.names_things and _tells_apart(own)]
        stays = [own for own in ids if names_identifier(own.name, role_words.STAY)]
        finest = max((own.n_distinct for own in stays), default=0)
        finest_stays = [own for own in stays if own.n_distinct == finest]
        best = _best(finest_stays, role_words.STAY, least=0.5)
        if best is None:
            patients = [own for own in ids if names_identifier(own.name, role_words.PATIENT)]
            best = _best(patients, role_words.PATIENT, least=0.5) or self._unnamed_stay(ids)
        if best is not None:
            self.structure = Structure(self.source, best.name)
            longest = int(self.structure.lengths.max())
            rows = "one row each" if best.unique else f"up to {longest:,} rows each"
            self.take("stay", best.name, f"is named like an identifier, {rows}")

    def _unnamed_stay(self, ids: list[ColumnFacts]) -> ColumnFacts | None:
        """The first column, if it ends like an identifier, or a time orders rows of its values."""
        begin = [own for own in ids if own.position < _FIRST_COLUMNS]
        many = [own for own in begin if _FEWEST_IDS < own.n_distinct >= own.n_rows / _ROWS_PER_ID]
        ended = [own for own in many if "".join(parts_of(own.name)).endswith("id")]
        if ended:
            return ended[0]
        first = next((own for own in ids if own.position == 0 and not own.unique), None)
        if first is None or first.n_distinct < 2:
            return None
        structure = Structure(self.source, first.name)
        timed = [own for own in self.free if likeness(own.name, role_words.STEP) >= SURE]
        return first if any(structure.is_unique(own.name) for own in timed) else None

    def guess_step(self) -> None:
        """What orders the rows of a stay: by its name, or since it never repeats within one."""
        if self.columns.step is not None or self.structure is None or not self.repeats:
            return
        ordered = [own for own in self.free if own.shape in ("number", "time") or _is_visit(own)]
        named = [own for own in ordered if likeness(own.name, role_words.STEP) >= SURE]
        best = _best((o for o in named if self.structure.is_unique(o.name)), role_words.STEP)
        if best is not None:
            self.take("step", best.name, "is named like a time and never repeats in a stay")
            return
        timed = [
            own
            for own in named
            if (own.shape == "time" or likeness(own.name, role_words.STEP) > 3)
            and not own.n_missing
            and not self.structure.is_constant(own.name)
        ]
        best = _best(timed, role_words.STEP)
        if best is not None:
            self.take("step", best.name, "is named like a time, but repeats within a stay")
            hours = self.structure.hours_per_row(best.name) if best.shape == "time" else None
            if hours is not None and self.columns.every is None:
                length = next((known for known in _STEP_HOURS if known >= hours), _STEP_HOURS[-1])
                reason = "times repeat within a stay; about a row a step, the last of them counts"
                self.take("every", f"{length}h", reason)
            return
        plain = [own for own in ordered if own.whole or own.shape == "time"]
        only = next((own for own in plain if self.structure.is_unique(own.name)), None)
        if only is not None:
            self.take("step", only.name, "never repeats within a stay")

    def guess_group(self) -> None:
        """The patient, where stays have an identifier of their own."""
        if self.columns.group is not None or self.structure is None:
            return
        for own in self.free:
            named = names_identifier(own.name, role_words.PATIENT) and own.names_things
            coarser = named and own.n_distinct <= self.structure.n_stays
            if coarser and self.structure.is_constant(own.name):
                if own.n_distinct > 1:
                    self.take("group", own.name, "is named like a patient, the same within a stay")
                return

    def guess_outcome(self) -> None:
        """A loss or a reward by its name, or the last column if it holds 0 and 1."""
        if self.columns.loss is not None or self.columns.reward is not None:
            return
        free = [own for own in self.free if not is_earlier(own.name)]
        worded = [own for own in free if own.shape == "text" and len(_words(own)) > 1]
        harms = [own for own in worded if not says_yes_no(_words(own)) and read_words(_words(own))]
        able = [own for own in free if own.shape in ("number", "yes_no") and own.n_distinct > 1]
        able = [own for own in able if not is_coded(own)]
        loss, reward = _best([*able, *harms], role_words.LOSS), _best(able, role_words.REWARD)
        likely = 0.0 if loss is None else likeness(loss.name, role_words.LOSS)
        last, unclear = self.facts[-1], _best(worded, role_words.LOSS)
        by_words = "its words say who came to harm"
        if reward is not None and likeness(reward.name, role_words.REWARD) > likely:
            self.take("reward", reward.name, "is named like a benefit")
        elif loss is not None:
            holding = "0 or 1" if loss.zero_one else "a number"
            holding = by_words if loss.shape == "text" else holding
            self.take("loss", loss.name, f"is named like an outcome, {holding}")
        elif harms:
            self.take("loss", harms[0].name, by_words)
        elif last in able and last.zero_one:
            self.take("loss", last.name, "is the last column and holds 0 and 1")
        elif unclear is not None:
            reason = "is named like an outcome; its words do not say which is the harm: see bad"
            self.take("loss", unclear.name, reason)

    def guess_action(self) -> None:
        """Treatments by their names: one column, several of a kind, or amounts."""
        if self.columns.treatment:
            return
        able = [own for own in self.free if _is_action(own) and not is_earlier(own.name)]
        best = _best(able, role_words.ACTION)
        if best is not None:
            boxes = _boxes(best, able)
            reason = f"is named like a treatment, {best.n_distinct} different values"
            if boxes:
                reason = "are named like treatments that can be ticked together"
            self.take("action", boxes or best.name, reason)
            return
        amounts = [own for own in self.free if _is_amount(own)]
        doses = [own for own in amounts if likeness(own.name, role_words.DOSE) >= SURE]
        if len(doses) > 2:
            doses = [own for own in doses if likeness(own.name, role_words.DOSE) >= 3]
        if 1 <= len(doses) <= 2:
            self.take("dose", tuple(own.name for own in doses), "is named like an amount given")
            return
        begun = [own for own in able if "".join(parts_of(own.name)).startswith(PREFIXES)]
        if 1 <= len(begun) <= _MOST_COMBINED:
            self.take("action", tuple(own.name for own in begun), "is named like a treatment")
            return
        for words, least, reason in (
            (role_words.DOSE, SURE, "is named like a dose"),
            (role_words.ACTION, 1.0, "its name begins like that of a treatment"),
        ):
            like = [own for own in able if likeness(own.name, words) >= least]
            if len(like) == 1:
                values = f"{like[0].n_distinct} different values"
                self.take("action", like[0].name, f"{reason}, {values}")
                return

    def guess_static(self) -> None:
        """Columns that never change within a stay."""
        if "static" in self.columns.given or self.structure is None or not self.repeats:
            return
        many = [own.name for own in self.free if own.n_distinct > 1]
        fixed = tuple(name for name in many if self.structure.is_constant(name))
        if fixed and self.structure.n_stays > 1:
            self.take("static", fixed, "never changes within a stay")

    def conclude(self) -> Guesses:
        """The guesses, with what a policy had better not see left out."""
        columns, one_row = self.columns, not self.repeats
        suspects = find_suspects(self.facts, self.free, columns, one_row=one_row)
        unsafe = [own.column for own in suspects if own.leave_out]
        if unsafe and not columns.given.keys() & {"features", "drop"}:
            rest = [own.name for own in self.free if own.name not in unsafe]
            fixed = tuple(name for name in columns.static if name not in unsafe)
            if fixed != columns.static:
                self.columns = columns.but(static=fixed or None)
                self.guesses = [
                    replace(own, value=fixed) if own.field == "static" else own
                    for own in self.guesses
                ]
            if len(unsafe) > len(rest) and rest:
                self.take("features", tuple(rest), "all but identifiers and what comes later")
            else:
                self.take("drop", tuple(unsafe), "identifiers, or known only later")
        guessed = {own.field for own in self.guesses}
        asked = ask(self.facts, self.columns, guessed=guessed, one_row=one_row)
        return Guesses(self.columns, tuple(self.guesses), suspects, asked)


def part_columns(columns: TableSpec) -> list[str]:
    """Every column that has a part other than being a feature of a step."""
    names = [*columns.columns.values(), columns.loss, columns.reward]
    known = [name for name in dict.fromkeys(names) if name is not None]
    return [*known, *columns.action, *columns.dose, *columns.static, *columns.drop]


def is_earlier(name: str) -> bool:
    """Whether a column is named like something from before the treatment."""
    return bool(EARLIER & set(parts_of(name)))


def is_coded(own: ColumnFacts) -> bool:
    """Whether a column holds a few numbers that stand for words, by its name and theirs."""
    few = own.shape == "number" and own.whole and not own.zero_one
    named = _CODED.search("".join(parts_of(own.name))) is not None
    return few and own.n_distinct <= _MOST_CODES and named


def ask(
    facts: Sequence[ColumnFacts],
    columns: TableSpec,
    *,
    guessed: Collection[str],
    one_row: bool,
) -> tuple[str, ...]:
    """What only somebody who knows the data can answer."""
    asked = []
    loss = next((own for own in facts if own.name == columns.loss), None)
    unclear = loss is not None and set(parts_of(loss.name)) <= _EITHER_WAY
    if loss is not None and unclear and loss.zero_one and "loss" in guessed:
        one = "1" if loss.shape == "number" else "yes"
        hoped = f"If it is what is hoped for: --reward {loss.name}"
        asked.append(f"{loss.name}: is {one} the harm? {hoped}")
    words = [] if loss is None or loss.shape != "text" or columns.bad else _words(loss)
    common = loss is not None and loss.n_rows >= LEAST_PEOPLE * len(words)
    if loss is not None and common and len(words) > 1 and read_words(words) is None:
        which = f"which of {', '.join(words)} are the harm?"
        asked.append(f"{loss.name}: {which} Name them in --bad")
    stems: dict[str, list[str]] = {}
    for own in facts:  # measurements that stand beside each other rather than below
        named = _NUMBERED.match(own.name)
        measured = own.shape == "number" and not own.zero_one and own.n_distinct > 2
        if one_row and named and measured and own.name not in columns.drop:
            stems.setdefault(named[1], []).append(own.name)
    return tuple(asked) + tuple(
        f"{names[0]} to {names[-1]} look like one thing measured {len(names)} times: were all "
        f"measured before the treatment? If not, --drop {as_option(names[-1])} and so on, or "
        "write a row a measurement and name --stay and --step"
        for names in stems.values()
        if len(names) >= _LEAST_REPEATED
    )


def stacked(facts: Sequence[ColumnFacts]) -> list[str]:
    """Whether a table has a row a measurement: the name in one column, the value in another."""
    what = [own.name for own in facts if own.name.lower() in _VARIABLE and own.shape == "text"]
    value = [own.name for own in facts if own.name.lower() in _VALUE]
    if not what or not value:
        return []
    return [
        f"table: has a row a measurement ({what[0]}, {value[0]}). Give each a column of its own: "
        f"frame.pivot_table(index=[...], columns={what[0]!r}, values={value[0]!r}).reset_index()"
    ]


def _words(own: ColumnFacts) -> list[str]:
    """The words of a column, if they are few."""
    words = [word for word in own.levels if word.strip() and not is_missing_mark(word)]
    return words if len(words) <= _MOST_WORDS else []


def _best(
    columns: Iterable[ColumnFacts], words: tuple[str, ...], *, least: float = SURE
) -> ColumnFacts | None:
    scored = [(likeness(own.name, words), own) for own in columns]
    scored = [pair for pair in scored if pair[0] >= least]
    return max(scored, key=lambda pair: pair[0], default=(0.0, None))[1]


def _tells_apart(own: ColumnFacts) -> bool:
    """Whether a column may tell stays apart: of a single patient only one that is called an id."""
    joined = "".join(parts_of(own.name))
    called = bool(ID_PARTS & set(parts_of(own.name))) or joined.endswith("id")
    return own.n_distinct > 2 or (called and own.n_rows > own.n_distinct)


def _boxes(best: ColumnFacts, able: Sequence[ColumnFacts]) -> tuple[str, ...]:
    """Columns `drug_a`, `drug_b` of 0 and 1, a box to tick each; `drug___1` as REDCap writes."""
    mark = "___" if "___" in best.name else "_"
    stem, there, _ = best.name.rpartition(mark)
    if not there or not best.zero_one or likeness(stem, role_words.ACTION) < SURE:
        return ()
    names = [own.name for own in able if own.zero_one and own.name.rpartition(mark)[0] == stem]
    return tuple(names) if 1 < len(names) <= _MOST_BOXES else ()


def _is_visit(own: ColumnFacts) -> bool:
    """Whether a column holds one word with numbers: V1, V2."""
    words = {re.sub(r"\d+", "", level).casefold() for level in own.levels}
    numbered = all(re.search(r"\d", level) for level in own.levels)
    return own.shape == "text" and len(words) == 1 and numbered


def _is_flag(own: ColumnFacts) -> bool:
    return own.zero_one and not own.n_missing


def _is_chance(own: ColumnFacts) -> bool:
    inside = own.low is not None and own.high is not None and 0 <= own.low <= own.high <= 1
    return own.shape == "number" and inside


def _is_action(own: ColumnFacts) -> bool:
    named = own.shape in ("text", "yes_no", "mixed") or own.whole  # mixed: none, 5 and 10
    return named and 2 <= own.n_distinct <= _MOST_ACTIONS


def _is_amount(own: ColumnFacts) -> bool:
    many = not own.whole or own.n_distinct > _MOST_CODES
    return own.shape == "number" and many and (own.low or 0) >= 0
