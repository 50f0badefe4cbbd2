"""Compares a recorded answer with ours."""


def differences(recorded, ours, place=""):
    """[(place, what was recorded, what we say)] wherever two answers differ, the order of keys included."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        both = [key for key in recorded if key in ours]
        if both != [key for key in ours if key in recorded]:
            yield place, list(recorded), list(ours)
        for key in {**recorded, **ours}:
            yield from differences(recorded.get(key), ours.get(key), f"{place}/{key}")
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for number, pair in enumerate(zip(recorded, ours)):
            yield from differences(*pair, f"{place}/{number}")
    elif recorded != ours:
        yield place, recorded, ours


def by_place(found):
    return sorted(found, key=lambda difference: difference[0])
