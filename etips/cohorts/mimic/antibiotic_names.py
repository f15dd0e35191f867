"""Antibiotics by drug name, without local forms and false friends (section 21.2)."""

from typing import Final

import ibis  # type: ignore[import-untyped, unused-ignore]
import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]

NAMES: Final = (
    r"cef|ceph|cillin|bactam|penem|floxacin|mycin|cycline|aztreonam|metronidazole|linezolid"
    r"|sulfameth|trimethoprim|nitrofurantoin|rifampin|micin|amikacin|tobramycin|colistin"
    r"|chloramphenicol"
)
FALSE_NAMES: Final = (
    r"cream|ophth|gel|desensitization|penicillamine|irrigat|mitomycin|bleomycin|dactinomycin"
    r"|plicamycin"
)
LOCAL_ROUTES: Final = ("OU", "OS", "OD", "AU", "AS", "AD", "TP")


def named_antibiotic(rows: ibis.Table) -> ir.BooleanValue:
    """Antibiotics by drug name, without local forms and false friends (section 21.2)."""
    name = rows.drug.lower()
    route = rows.route.fill_null("")
    local = route.upper().isin(LOCAL_ROUTES) | route.lower().re_search("eye|ear")
    base = rows.drug_type.fill_null("").upper() == "BASE"
    return name.re_search(NAMES) & ~name.re_search(FALSE_NAMES) & ~local & ~base
