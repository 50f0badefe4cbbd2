"""The licence of a whole database, which follows from the licences of its sources."""

import re
from collections.abc import Iterable

# The sources that count: the base, and those that have records in the database.
SOURCES = """SELECT name, licence FROM sources
    WHERE sourceId = 1 OR sourceId IN (SELECT sourceId FROM origins) ORDER BY sourceId"""

FREE, NAMED, SHARED_ALIKE = "CC0 1.0", "CC BY 4.0", "CC BY-NC-SA 4.0"
# The least strict licence that data under each licence allows for the whole. BY-NC-SA 3.0 allows
# its later versions (section 4b).
KNOWN = {
    FREE: FREE,
    NAMED: NAMED,
    SHARED_ALIKE: SHARED_ALIKE,
    "CC BY-NC-SA 3.0": SHARED_ALIKE,
    "CC BY-NC-SA 3.0 and 4.0": SHARED_ALIKE,  # the sample
}
STRICTNESS = (FREE, NAMED, SHARED_ALIKE)
# What `licence_of_file` returns: an export has it as its licence, and may be loaded again.
WITH_NAMES = re.compile("(.*); name (.*), and say that it was changed")


def is_open(licence: str | None) -> bool:
    """Whether data under this licence may be used for anything: with names, or freely."""
    match = WITH_NAMES.fullmatch(licence or "")
    return KNOWN.get(match[1] if match else licence or "") in (FREE, NAMED)


def licence_of_file(sources: Iterable[tuple[str, str | None]]) -> str:
    """The licence of data from these sources: their public names, and their licences."""
    licences, unclear = {FREE}, []
    to_name: dict[str, None] = {}  # each once, in this order
    for name, licence in sources:
        match = WITH_NAMES.fullmatch(licence or "")
        licence, names = match.groups() if match else (licence, name)
        if licence not in KNOWN:
            unclear.append(name)
            continue
        licences.add(KNOWN[licence])
        if licence != FREE:
            to_name |= dict.fromkeys(names.split(", "))
    if unclear:
        return f"not stated, because of {', '.join(unclear)}"
    whole = max(licences, key=STRICTNESS.index)
    return f"{whole}; name {', '.join(to_name)}, and say that it was changed" if to_name else whole
