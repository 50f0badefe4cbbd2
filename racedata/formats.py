"""How both halves read and write texts, each way once.

A format that only one half needs is in the module that needs it.
"""


def milliseconds(text: str) -> int:
    """A duration such as `1:02:03.4`, `1:07.012` or `23.251` in milliseconds."""
    *longer, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    minutes = 0
    for part in longer:
        minutes = minutes * 60 + int(part)
    return (minutes * 60 + int(whole)) * 1000 + int(f"{fraction[:3]:0<3}")


def hours_to_thousandths(milliseconds: int) -> tuple[int, int, int, int]:
    """Hours, minutes, seconds, thousandths."""
    seconds, thousandths = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return hours, minutes, seconds, thousandths


def lap_time(milliseconds: int) -> str:
    """M:SS.mmm, as dumps have lap times: `0:54.064`."""
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes}:{rest // 1000:02}.{rest % 1000:03}"


def short_time(milliseconds: int) -> str:
    """S.mmm, M:SS.mmm or H:MM:SS.mmm, without leading parts that are zero: `26.898`."""
    hours, minutes, seconds, thousandths = hours_to_thousandths(milliseconds)
    if hours:
        return f"{hours}:{minutes:02}:{seconds:02}.{thousandths:03}"
    return f"{minutes}:{seconds:02}.{thousandths:03}" if minutes else f"{seconds}.{thousandths:03}"
