"""One function to each JSON object of the wire, from a row of the database to a dict in the wire's key order.

Every leaf is a string, and what is unknown is left out. Nothing here knows of HTTP or SQL.
"""

from itertools import groupby
from operator import itemgetter


def known(**facts):
    """The facts that are known, numbers as text; texts and objects among them stay as they are."""
    return {name: str(fact) if type(fact) is int else fact for name, fact in facts.items() if fact is not None}


def mrdata(series, url, limit, offset, total, **table):
    """The envelope of every answer; `table` is its one table by name, such as `RaceTable`."""
    return {"MRData": {**known(xmlns="", series=series, url=url, limit=limit, offset=offset, total=total), **table}}


def race_table(season, round, races):
    """`round` is None where the request names none."""
    return {**known(season=season, round=round), "Races": races}


class Directory:
    """What thousands of answers repeat, assembled once: Circuit, Driver and Constructor objects and statuses by id."""

    def __init__(self, database):
        self.circuits = {row["circuitId"]: circuit(row) for row in database.circuits()}
        self.drivers = {row["driverId"]: driver(row) for row in database.drivers()}
        self.constructors = {row["constructorId"]: constructor(row) for row in database.constructors()}
        self.statuses = database.statuses()


def circuit(row):
    return known(
        circuitId=row["circuitRef"],
        url=row["url"],
        circuitName=row["name"],
        Location=known(lat=row["lat"], long=row["lng"], locality=row["location"], country=row["country"]),
    )


def driver(row):
    return known(
        driverId=row["driverRef"],
        permanentNumber=row["number"],
        code=row["code"],
        url=row["url"],
        givenName=row["forename"],
        familyName=row["surname"],
        dateOfBirth=row["dob"],
        nationality=row["nationality"],
    )


def constructor(row):
    return known(constructorId=row["constructorRef"], url=row["url"], name=row["name"], nationality=row["nationality"])


def race(row, directory):
    """A race without its session schedule, as it stands above records."""
    return known(
        season=row["year"],
        round=row["round"],
        url=row["url"],
        raceName=row["name"],
        Circuit=directory.circuits[row["circuitId"]],
        date=row["date"],
        time=utc(row["time"]),
    )


def scheduled_race(row, directory):
    """A race with its session schedule."""
    return {**race(row, directory), **schedule(row)}


def schedule(row):
    """The weekend's sessions beside the race."""
    second = session(row["fp2_date"], row["fp2_time"])
    # From 2023 on, the dump keeps the session that sets the sprint's grid where other weekends have second practice.
    sprint_grid = row["hasSprint"] and row["year"] >= 2023
    return known(
        FirstPractice=session(row["fp1_date"], row["fp1_time"]),
        SecondPractice=None if sprint_grid else second,
        ThirdPractice=session(row["fp3_date"], row["fp3_time"]),
        Qualifying=session(row["quali_date"], row["quali_time"]),
        # Always there on a sprint weekend, if need be empty: clients ask for the sprint only where they see it.
        Sprint=(session(row["sprint_date"], row["sprint_time"]) or {}) if row["hasSprint"] else None,
        SprintShootout=second if sprint_grid and row["year"] == 2023 else None,
        SprintQualifying=second if sprint_grid and row["year"] > 2023 else None,
    )


def session(date, time):
    """`{date, time}`, or None where neither is known."""
    return known(date=date, time=utc(time)) or None


def utc(time):
    return time and f"{time}Z"


def result(row, directory, finish_time):
    """A row of a race's or sprint's classification; `finish_time(milliseconds, winner's milliseconds)` is its time."""
    milliseconds = row["milliseconds"]
    return known(
        number=row["number"],
        position=row["positionOrder"],
        positionText=row["positionText"],
        points=row["points"],
        Driver=directory.drivers[row["driverId"]],
        Constructor=directory.constructors[row["constructorId"]],
        grid=row["grid"],
        laps=row["laps"],
        status=directory.statuses[row["statusId"]],
        Time=None
        if milliseconds is None
        else known(millis=milliseconds, time=finish_time(milliseconds, row["winnerMilliseconds"])),
        FastestLap=fastest_lap(row),
    )


def fastest_lap(row):
    """None where no lap counts: the source has none, or ranks it 0."""
    if row["fastestLap"] is None or row["rank"] == 0:
        return None
    time, speed = row["fastestLapTime"], row["fastestLapSpeed"]
    return known(
        rank=row["rank"],
        lap=row["fastestLap"],
        Time=time and {"time": time},
        AverageSpeed=speed and {"units": "kph", "speed": speed},
    )


def qualifying_result(row, directory):
    return known(
        number=row["number"],
        position=row["position"],
        Driver=directory.drivers[row["driverId"]],
        Constructor=directory.constructors[row["constructorId"]],
        Q1=row["q1"],
        Q2=row["q2"],
        Q3=row["q3"],
    )


def laps(rows, directory):
    """Timings grouped into laps; a page may begin and end in the middle of one."""
    return [
        {"number": str(lap), "Timings": [timing(*row, directory.drivers) for row in timings]}
        for lap, timings in groupby(rows, key=itemgetter(0))
    ]


def timing(lap, driver_id, position, time, drivers):
    name = drivers[driver_id]["driverId"]
    if position is None or time is None:
        return known(driverId=name, position=position, time=time)
    return {"driverId": name, "position": str(position), "time": time}  # nine of ten records are timings: no call


def parts(milliseconds):
    """(hours, minutes, seconds, thousandths)"""
    seconds, thousandths = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    return *divmod(minutes, 60), seconds, thousandths


def race_time(milliseconds, winner):
    """H:MM:SS.mmm, whoever won: `0:03:27.071`."""
    return "{}:{:02}:{:02}.{:03}".format(*parts(milliseconds))


def sprint_time(milliseconds, winner):
    """MM:SS.mmm, and H:MM:SS.mmm from an hour on."""
    hours, minutes, seconds, thousandths = parts(milliseconds)
    return f"{hours}:" * (hours > 0) + f"{minutes:02}:{seconds:02}.{thousandths:03}"


def gap_time(milliseconds, winner):
    """Behind the winner `+5.155`, `+1:04.278`; without anything to be behind of, the time itself: `3:27.071`.

    The winner is not behind, nor who shared the winner's car (1951, 1956, 1957), nor who was faster and disqualified.
    """
    behind = winner is not None and milliseconds > winner
    hours, minutes, seconds, thousandths = parts(milliseconds - winner if behind else milliseconds)
    if hours:
        text = f"{hours}:{minutes:02}:{seconds:02}"
    elif minutes:
        text = f"{minutes}:{seconds:02}"
    else:
        text = f"{seconds}"
    return f"{'+' if behind else ''}{text}.{thousandths:03}"


# `Time.time` by the setting `finish_times`.
RACE_TIMES = {"total": race_time, "gap": gap_time}
SPRINT_TIMES = {"total": sprint_time, "gap": gap_time}
