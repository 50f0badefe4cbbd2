"""The checks of `racedata check`: one file per subject."""

from racedata.loader.checks import calendar, grid, lists, places, qualifying, standings, times

# In the order of the report.
ALL = (
    *lists.CHECKS,
    *places.CHECKS,
    *times.CHECKS,
    *grid.CHECKS,
    *qualifying.CHECKS,
    *standings.CHECKS,
    *calendar.CHECKS,
)
