"""Which column plays which part, where the user did not say: by names, and by how the rows lie.

A guess comes with its reason. `read_table` and the commands never use one by themselves.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from etips.checks import role_words
from etips.checks.column_facts import MOST_LEVELS, ColumnFacts, Structure
from etips.checks.role_words import (
    EARLIER,
    ID_PARTS,
    PREFIXES,
    SURE,
    likeness,
    names_identifier,
    parts_of,
)
from etips.data.intake.outcomes import is_missing_mark, read_words, says_yes_no
from etips.data.tables.sources import Source
from etips.data.tables.table_spec import TableSpec
from etips.disclosure import LEAST_PEOPLE
from etips.errors import as_option

_COMMON = ("event", "issue", "cost", "response", "readmission", "readmitted", "relapse", "adverse")
LEAST_BEFORE = 3  # columns before the treatment that make a table look like it is in order of time
FEW_VALUES, FEW_WORDS = 20, 10


@dataclass(frozen=True)
class Suspect:
    """A column, and what speaks against it as a feature."""

    column: str
    reason: str
    leave_out: bool = True
    later: bool = False


def find_suspects(
    facts: Sequence[ColumnFacts],
    free: Sequence[ColumnFacts],
    columns: TableSpec,
    *,
    one_row: bool,
) -> tuple[Suspect, ...]:
    """Suspects among the features, those to be left out first."""
    fixed = set(columns.static)
    looked_at = [own for own in facts if own in free or own.name in fixed]
    codes = set(columns.categorical)
    found = {own.name: s for own in looked_at if (s := _alone(own)) and own.name not in codes}
    if one_row:
        behind = _in_order(facts, looked_at, columns, found)
        found = behind | {n: s for n, s in found.items() if s.leave_out or n not in behind}
    ordered = [found[own.name] for own in looked_at if own.name in found]
    return tuple(sorted(ordered, key=lambda own: not own.leave_out))


def _alone(own: ColumnFacts) -> Suspect | None:
    """What a column by itself gives rise to."""
    outcome = max(likeness(own.name, role_words.LOSS), likeness(own.name, role_words.REWARD))
    if outcome > 0 and own.shape != "other" and not likeness(own.name, _COMMON):
        return Suspect(own.name, "is named like an outcome, known only later", later=True)
    if is_later(own.name):
        return Suspect(own.name, "is named like something known only later", later=True)
    known = own.n_rows - own.n_missing
    if role_words.FORM_STATUS.search(own.name.lower()):
        return Suspect(own.name, "is kept by REDCap itself")
    if likeness(own.name, role_words.PERSONAL) >= SURE and own.n_distinct > FEW_WORDS:
        return Suspect(own.name, "is named like something that tells who a person is")
    if own.shape == "text" and own.n_distinct > max(FEW_WORDS, 0.5 * known):
        return Suspect(own.name, "is an identifier or free text: hardly a value occurs twice")
    if own.shape == "text" and own.n_distinct > MOST_LEVELS:
        reason = f"is text of more than {MOST_LEVELS} levels: --categorical keeps it"
        return Suspect(own.name, reason)
    numbered = likeness(own.name, role_words.ROW_NUMBER) >= SURE
    named = any(names_identifier(own.name, w) for w in (role_words.PATIENT, role_words.STAY))
    if own.names_things and own.unique and own.n_rows > FEW_VALUES and (numbered or named):
        return Suspect(own.name, "is an identifier: no value occurs twice")
    if own.names_things and (own.n_distinct > FEW_VALUES or own.n_distinct == 1) and named:
        return Suspect(own.name, "is named like an identifier")
    code = likeness(own.name, role_words.CODE) >= 1 and own.shape == "number"
    if (
        code
        and own.whole
        and own.n_distinct > MOST_LEVELS
        and role_words.CODE_END.search("".join(parts_of(own.name)))
    ):
        reason = f"holds codes of more than {MOST_LEVELS} levels (--categorical keeps them)"
        return Suspect(own.name, reason)
    if code and own.whole and not own.zero_one and own.n_distinct > 2:
        reason = "holds numbers, but is named like codes: --categorical if it is"
        return Suspect(own.name, reason, leave_out=False)
    return None


def is_later(name: str) -> bool:
    """Whether a column is named like something known only once a stay is over."""
    joined = "".join(role_words.parts_of(name))
    within = any(word in joined for word in role_words.LATER_WITHIN)
    return within or likeness(name, role_words.LATER) >= SURE


def _in_order(
    facts: Sequence[ColumnFacts],
    looked_at: Sequence[ColumnFacts],
    columns: TableSpec,
    found: dict[str, Suspect],
) -> dict[str, Suspect]:
    """What stands behind the treatment in a table that is written in the order of time.

    It is if features stand before the treatment and outcomes behind it.
    """
    place = {own.name: own.position for own in facts}
    treated = [place[name] for name in columns.treatment if name in place]
    if not treated:
        return {}
    last = max(treated)
    before = [own for own in looked_at if own.position < min(treated) and own.name not in found]
    behind = [own for own in looked_at if own.position > last]
    outcome = place.get(columns.loss or columns.reward or "", -1)
    if len(before) < LEAST_BEFORE or outcome < last or not behind:
        return {}
    later = any(found[own.name].later for own in behind if own.name in found)
    reason = "stands behind the treatment in the table: known only later?"
    return {own.name: Suspect(own.name, reason, leave_out=later, later=True) for own in behind}


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
_MOST_CODES = 12
_NUMBERED = re.compile(r"^(.*?\D)(\d{1,3})$")


def is_earlier(name: str) -> bool:
    """Whether a column is named like something from before the treatment."""
    return bool(EARLIER & set(parts_of(name)))


def says_harm(own: ColumnFacts) -> bool:
    """Whether a column of text has few words, and they say who came to harm."""
    words = _words(own)
    clear = len(words) > 1 and not says_yes_no(words) and read_words(words) is not None
    return own.shape == "text" and clear


def wordy(columns: Sequence[ColumnFacts]) -> list[ColumnFacts]:
    """Columns of text of a few words."""
    return [own for own in columns if own.shape == "text" and len(_words(own)) > 1]


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
    if loss is not None and "loss" in guessed:
        asked += _direction(loss)
    if loss is not None and not columns.bad:
        asked += _harms(loss)
    if one_row:
        asked += _repeated(facts, columns)
    return tuple(asked)


def is_coded(own: ColumnFacts) -> bool:
    """Whether a column holds a few numbers that stand for words, by its name and theirs."""
    few = own.shape == "number" and own.whole and not own.zero_one
    named = _CODED.search("".join(parts_of(own.name))) is not None
    return few and own.n_distinct <= _MOST_CODES and named


def stacked(facts: Sequence[ColumnFacts]) -> list[str]:
    """Whether a table has a row a measurement: the name in one column, the value in another."""
    what = [own for own in facts if own.name.lower() in _VARIABLE and own.shape == "text"]
    value = [own for own in facts if own.name.lower() in _VALUE]
    if not what or not value:
        return []
    name, number = what[0].name, value[0].name
    return [
        f"table: has a row a measurement ({name}, {number}). Give each a column of its own: "
        f"frame.pivot_table(index=[...], columns={name!r}, values={number!r}).reset_index()"
    ]


def _direction(loss: ColumnFacts) -> list[str]:
    """Of an outcome whose name does not say whether 1 is good or bad."""
    if not loss.zero_one or not set(parts_of(loss.name)) <= _EITHER_WAY:
        return []
    one = "1" if loss.shape == "number" else "yes"
    return [f"{loss.name}: is {one} the harm? If it is what is hoped for: --reward {loss.name}"]


def _harms(loss: ColumnFacts) -> list[str]:
    """Of an outcome in words that do not say which is the harm."""
    words = _words(loss)
    if loss.shape != "text" or len(words) < 2 or read_words(words) is not None:
        return []
    if loss.n_rows < LEAST_PEOPLE * len(words):
        return []
    return [f"{loss.name}: which of {', '.join(words)} are the harm? Name them in --bad"]


def _words(own: ColumnFacts) -> list[str]:
    words = [word for word in own.levels if word.strip() and not is_missing_mark(word)]
    return words if len(words) <= _MOST_WORDS else []


def _repeated(facts: Sequence[ColumnFacts], columns: TableSpec) -> list[str]:
    """Measurements that stand beside each other rather than below."""
    out = set(columns.drop)
    stems: dict[str, list[ColumnFacts]] = {}
    for own in facts:
        named = _NUMBERED.match(own.name)
        measured = own.shape == "number" and not own.zero_one and own.n_distinct > 2
        if named and measured and own.name not in out:
            stems.setdefault(named[1], []).append(own)
    return [
        f"{own[0].name} to {own[-1].name} look like one thing measured {len(own)} times: were all "
        f"measured before the treatment? If not, --drop {as_option(own[-1].name)} and so on, or "
        "write a row a measurement and name --stay and --step"
        for own in stems.values()
        if len(own) >= _LEAST_REPEATED
    ]


MOST_ACTIONS = 40  # of a column that is taken for one of actions
MOST_COMBINED = 3  # columns whose combination is taken for an action
MOST_BOXES = 8  # the same of columns that say yes or no each
STEP_HOURS = (1, 2, 4, 6, 8, 12, 24)  # lengths of a step that are proposed
FIRST_COLUMNS = 2  # among which an identifier without a known name is looked for
FEWEST_IDS = 10  # values of such a column
ROWS_PER_ID = 50  # at most, of an identifier without a known name
MOST_CODES = 12  # whole numbers above which a column named like a dose holds amounts


@dataclass(frozen=True)
class Guess:
    """A part that nobody named, and what speaks for it."""

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
        """Columns without a part."""
        taken = set(part_columns(self.columns))
        return [own for own in self.facts if own.name not in taken and own.shape != "other"]

    @property
    def repeats(self) -> bool:
        """Whether stays have several rows."""
        return self.structure is not None and self.structure.longest > 1

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
        if getattr(self.columns, name) is not None:
            return
        best = _best((own for own in self.free if suits(own)), words, least=SURE)
        if best is not None:
            self.take(name, best.name, f"is named like {what}")

    def guess_stay(self) -> None:
        """The finest identifier; without one every row is a patient of its own."""
        if self.columns.stay is not None:
            return
        ids = [own for own in self.free if own.names_things and _tells_apart(own)]
        stays = [own for own in ids if names_identifier(own.name, role_words.STAY)]
        finest = max((own.n_distinct for own in stays), default=0)
        best = _best((own for own in stays if own.n_distinct == finest), role_words.STAY)
        if best is None:
            patients = [own for own in ids if names_identifier(own.name, role_words.PATIENT)]
            best = _best(patients, role_words.PATIENT) or self._unnamed_stay(ids)
        if best is None:
            return
        self.structure = Structure(self.source, best.name)
        rows = "one row each" if best.unique else f"up to {self.structure.longest:,} rows each"
        self.take("stay", best.name, f"is named like an identifier, {rows}")

    def _unnamed_stay(self, ids: list[ColumnFacts]) -> ColumnFacts | None:
        """The first column, if it ends like an identifier, or a time orders rows of its values."""
        begin = [own for own in ids if own.position < FIRST_COLUMNS]
        many = [own for own in begin if FEWEST_IDS < own.n_distinct >= own.n_rows / ROWS_PER_ID]
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
        unique = {own.name for own in named if self.structure.is_unique(own.name)}
        best = _best((own for own in named if own.name in unique), role_words.STEP)
        if best is not None:
            self.take("step", best.name, "is named like a time and never repeats in a stay")
            return
        timed = [
            own for own in named if own.shape == "time" or likeness(own.name, role_words.STEP) > 3
        ]
        timed = [
            own for own in timed if not own.n_missing and not self.structure.is_constant(own.name)
        ]
        best = _best(timed, role_words.STEP)
        if best is not None:
            self.take("step", best.name, "is named like a time, but repeats within a stay")
            self.guess_every(best)
            return
        plain = [own for own in ordered if own.whole or own.shape == "time"]
        only = next((own for own in plain if self.structure.is_unique(own.name)), None)
        if only is not None:
            self.take("step", only.name, "never repeats within a stay")

    def guess_every(self, step: ColumnFacts) -> None:
        """A length of steps that most stays have a row for, where times repeat."""
        if self.columns.every is not None or self.structure is None or step.shape != "time":
            return
        hours = self.structure.hours_per_row(step.name)
        if hours is not None:
            length = next((known for known in STEP_HOURS if known >= hours), STEP_HOURS[-1])
            reason = "times repeat within a stay; about a row a step, the last of them counts"
            self.take("every", f"{length}h", reason)

    def guess_group(self) -> None:
        """The patient, where stays have an identifier of their own."""
        if self.columns.group is not None or self.structure is None:
            return
        stay = next(own for own in self.facts if own.name == self.columns.stay)
        for own in self.free:
            likely = names_identifier(own.name, role_words.PATIENT) and own.names_things
            if (
                likely
                and own.n_distinct <= stay.n_distinct
                and self.structure.is_constant(own.name)
            ):
                if own.n_distinct > 1:
                    self.take("group", own.name, "is named like a patient, the same within a stay")
                return

    def guess_outcome(self) -> None:
        """A loss or a reward by its name, or the last column if it holds 0 and 1."""
        if self.columns.loss is not None or self.columns.reward is not None:
            return
        free = [own for own in self.free if not is_earlier(own.name)]
        worded = [own for own in free if says_harm(own)]
        able = [own for own in free if _is_outcome(own)]
        loss = _best([*able, *worded], role_words.LOSS, least=SURE)
        reward = _best(able, role_words.REWARD, least=SURE)
        likely = 0.0 if loss is None else likeness(loss.name, role_words.LOSS)
        last, unclear = self.facts[-1], _best(wordy(free), role_words.LOSS, least=SURE)
        if reward is not None and likeness(reward.name, role_words.REWARD) > likely:
            self.take("reward", reward.name, "is named like a benefit")
        elif loss is not None:
            holding = "0 or 1" if loss.zero_one else "a number"
            if loss.shape == "text":
                holding = "its words say who came to harm"
            self.take("loss", loss.name, f"is named like an outcome, {holding}")
        elif worded:
            self.take("loss", worded[0].name, "its words say who came to harm")
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
        best = _best(able, role_words.ACTION, least=SURE)
        if best is not None:
            boxes = _boxes(best, able)
            if boxes:
                self.take("action", boxes, "are named like treatments that can be ticked together")
            else:
                self.take(
                    "action",
                    best.name,
                    f"is named like a treatment, {_values(best)}",
                )
            return
        amounts = [own for own in self.free if _is_amount(own)]
        doses = [own for own in amounts if likeness(own.name, role_words.DOSE) >= SURE]
        exact = [own for own in doses if likeness(own.name, role_words.DOSE) >= 3]
        doses = exact if len(doses) > 2 else doses
        if 1 <= len(doses) <= 2:
            self.take("dose", tuple(own.name for own in doses), "is named like an amount given")
            return
        begun = [own for own in able if "".join(parts_of(own.name)).startswith(PREFIXES)]
        if 1 <= len(begun) <= MOST_COMBINED:
            self.take("action", tuple(own.name for own in begun), "is named like a treatment")
            return
        coded = [own for own in able if likeness(own.name, role_words.DOSE) >= SURE]
        if len(coded) == 1:
            self.take(
                "action",
                coded[0].name,
                f"is named like a dose, {_values(coded[0])}",
            )
            return
        begun = [own for own in able if likeness(own.name, role_words.ACTION) >= 1]
        if len(begun) == 1:
            reason = f"its name begins like that of a treatment, {_values(begun[0])}"
            self.take("action", begun[0].name, reason)

    def guess_static(self) -> None:
        """Columns that never change within a stay."""
        if "static" in self.columns.given or self.structure is None or not self.repeats:
            return
        if self.structure.n_stays < 2:
            return
        fixed = tuple(
            own.name
            for own in self.free
            if own.n_distinct > 1 and self.structure.is_constant(own.name)
        )
        if fixed:
            self.take("static", fixed, "never changes within a stay")

    def conclude(self) -> Guesses:
        """The guesses, with what a policy had better not see left out."""
        columns = self.columns
        suspects = find_suspects(self.facts, self.free, columns, one_row=not self.repeats)
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
        fields = {own.field for own in self.guesses}
        asked = ask(self.facts, self.columns, guessed=fields, one_row=not self.repeats)
        return Guesses(self.columns, tuple(self.guesses), suspects, asked)


def part_columns(columns: TableSpec) -> list[str]:
    """Every column that has a part other than being a feature of a step."""
    single = (
        *(columns.stay, columns.step, columns.loss, columns.reward, columns.propensity),
        *(columns.group, columns.eligible, columns.negative_control),
    )
    several = (columns.action, columns.dose, columns.static, columns.drop)
    names = [name for name in single if name is not None]
    return names + [name for part in several for name in part]


def _best(
    columns: Iterable[ColumnFacts], words: tuple[str, ...], *, least: float = 0.5
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
    return tuple(names) if 1 < len(names) <= MOST_BOXES else ()


def _is_visit(own: ColumnFacts) -> bool:
    """Whether a column holds one word with numbers: V1, V2."""
    words = {re.sub(r"\d+", "", level).casefold() for level in own.levels}
    return (
        own.shape == "text"
        and len(words) == 1
        and all(re.search(r"\d", level) for level in own.levels)
    )


def _values(own: ColumnFacts) -> str:
    return f"{own.n_distinct} different values"


def _is_flag(own: ColumnFacts) -> bool:
    return own.zero_one and not own.n_missing


def _is_chance(own: ColumnFacts) -> bool:
    inside = own.low is not None and own.high is not None and 0 <= own.low <= own.high <= 1
    return own.shape == "number" and inside


def _is_outcome(own: ColumnFacts) -> bool:
    return own.shape in ("number", "yes_no") and own.n_distinct > 1 and not is_coded(own)


def _is_action(own: ColumnFacts) -> bool:
    named = own.shape in ("text", "yes_no", "mixed") or own.whole  # mixed: none, 5 and 10
    return named and 2 <= own.n_distinct <= MOST_ACTIONS


def _is_amount(own: ColumnFacts) -> bool:
    many = not own.whole or own.n_distinct > MOST_CODES
    return own.shape == "number" and many and (own.low or 0) >= 0
