"""The databases that the cohort can be built from, and which of them a source holds.

A further one is a class beside `mimic3`, with what `Extraction` has, and a line here.
"""

from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from typing import Final

from etips.cohorts.dataset.agreement import Check, Evidence, Published, validate
from etips.cohorts.engines import address as engines
from etips.cohorts.engines.layouts import any_of
from etips.cohorts.engines.sources import Source
from etips.cohorts.mimic.extraction import Extraction
from etips.cohorts.mimic.mimic3 import Mimic3Extraction
from etips.cohorts.mimic.mimic4 import Mimic4Extraction
from etips.errors import DataError, SettingError

Database = type[Extraction]

DATABASES: Final[dict[str, Database]] = {
    database.name: database for database in (Mimic3Extraction, Mimic4Extraction)
}
LAYOUTS: Final = any_of(database.layout for database in DATABASES.values())

open_source = partial(engines.open_source, layouts=LAYOUTS)
"""Open raw tables of any known database as `engines.address.open_source` does; to be closed."""
resumable_source = partial(engines.resumable_source, layouts=LAYOUTS)
"""The same for a build whose result goes to `out`: `engines.address.resumable_source`."""


def recognise(source: Source) -> Database:
    """Say which database a source holds.

    If none is recognised, it is the first: opening it will name what is missing.
    """
    tables = source.tables()
    recognised = [database for database in DATABASES.values() if database.recognises(tables)]
    if len(recognised) > 1:
        labels = " and ".join(database.label for database in recognised)
        rule = f"must hold one database; it looks like {labels}"
        raise DataError(source.name, rule, fix="Give the folder or schema of one of them.")
    return recognised[0] if recognised else next(iter(DATABASES.values()))


def extract(
    source: Source, profile: str | None = None, changes: Mapping[str, object] = {}
) -> Extraction:
    """Open the database that a source holds under a profile.

    Args:
        source: From `open_source`.
        profile: Its name; the database's own choice if left out.
        changes: Single settings in place of the profile's; for the length of a step,
            `steps_of_hours`; for Sepsis-3 as others define it, `onset`.
    """
    database = recognise(source)
    chosen = profile or next(iter(database.profiles))
    if chosen not in database.profiles:
        raise SettingError("profile", f"must be one of {', '.join(database.profiles)}")
    definition = changes.get("onset")
    if definition is not None and definition not in database.definitions:
        own = [data.label for data in DATABASES.values() if definition in data.definitions]
        fix = f"It is one for {' or '.join(own)}." if own else "Leave it out."
        raise SettingError("onset", f"{definition} is no definition for {database.label}", fix=fix)
    return database.extract(source, chosen, changes)


def compare(evidence: Evidence) -> list[Check]:
    """Compare a cohort with what has been published about its database, if anybody has."""
    place = files("etips.cohorts.mimic") / f"{evidence.database}_published.csv"
    known = evidence.database in DATABASES and place.is_file()
    return validate(evidence, Published.read(place.read_text("utf-8")) if known else None)
