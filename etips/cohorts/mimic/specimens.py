"""What a laboratory row tells of the specimen that a blood gas was measured in."""

from typing import Final

import ibis.expr.types as ir  # type: ignore[import-untyped, unused-ignore]

_ARTERIAL: Final = "ART"
_BLANKED: Final = "___"  # what the publisher puts in place of a text that was removed


def specimen_told(text: ir.StringValue) -> ir.BooleanValue:
    """Whether a text says anything of the specimen."""
    return text.notnull() & ~_plain(text).isin(("", _BLANKED))


def is_arterial(text: ir.StringValue) -> ir.BooleanValue:
    """Whether it says arterial: ART, ART. with a dot, whatever the case and the blanks around."""
    return _plain(text) == _ARTERIAL


def _plain(text: ir.StringValue) -> ir.StringValue:
    return text.upper().replace(".", "").strip()
