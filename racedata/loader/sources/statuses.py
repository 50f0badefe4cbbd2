"""The statuses of results, for dumps that have texts of statuses but no ids."""

import re

from racedata.loader.stage import Stage

# The texts of Ergast's ids (from 1; there is no 52 and no 57) and of two that Jolpica's API added
# (142, 143).
STATUSES = """
Finished|Disqualified|Accident|Collision|Engine|Gearbox|Transmission|Clutch|Hydraulics
Electrical|+1 Lap|+2 Laps|+3 Laps|+4 Laps|+5 Laps|+6 Laps|+7 Laps|+8 Laps|+9 Laps|Spun off
Radiator|Suspension|Brakes|Differential|Overheating|Mechanical|Tyre|Driver Seat|Puncture
Driveshaft|Retired|Fuel pressure|Front wing|Water pressure|Refuelling|Wheel|Throttle|Steering
Technical|Electronics|Broken wing|Heat shield fire|Exhaust|Oil leak|+11 Laps|Wheel rim
Water leak|Fuel pump|Track rod|+17 Laps|Oil pressure||+13 Laps|Withdrew|+12 Laps|Engine fire|
+26 Laps|Tyre puncture|Out of fuel|Wheel nut|Not classified|Pneumatics|Handling|Rear wing|Fire
Wheel bearing|Physical|Fuel system|Oil line|Fuel rig|Launch control|Injured|Fuel|Power loss
Vibrations|107% Rule|Safety|Drivetrain|Ignition|Did not qualify|Injury|Chassis|Battery|Stalled
Halfshaft|Crankshaft|+10 Laps|Safety concerns|Not restarted|Alternator|Underweight|Safety belt
Oil pump|Fuel leak|Excluded|Did not prequalify|Injection|Distributor|Driver unwell|Turbo
CV joint|Water pump|Fatal accident|Spark plugs|Fuel pipe|Eye injury|Oil pipe|Axle|Water pipe
+14 Laps|+15 Laps|+25 Laps|+18 Laps|+22 Laps|+16 Laps|+24 Laps|+29 Laps|+23 Laps|+21 Laps
Magneto|+44 Laps|+30 Laps|+19 Laps|+46 Laps|Supercharger|+20 Laps|+42 Laps|Engine misfire
Collision damage|Power Unit|ERS|+49 Laps|+38 Laps|Brake duct|Seat|Damage|Debris|Illness
Undertray|Cooling system|Did not start|Lapped
"""


def known_statuses() -> dict[str, int]:
    """The ids of the known statuses, by text."""
    texts = enumerate(re.split(r"[|\n]", STATUSES.strip("\n")), 1)
    return {text: id for id, text in texts if text}


def insert_statuses(stage: Stage, texts: str) -> None:
    """Inserts the known statuses, and those that a query finds: texts, and numbers that order the
    new ones.

    A text that is not known, whatever its letter case, gets the next id.
    """
    known = known_statuses()
    stage.insert("status", ["statusId", "status"], [list(known.values()), list(known)])
    new = stage.db.execute(
        f"""INSERT INTO stage.status (statusId, status)
            WITH found (text, number) AS ({texts})
            SELECT {max(known.values())} + row_number() OVER (ORDER BY min(number)), text
            FROM found WHERE text COLLATE NOCASE NOT IN (SELECT status FROM stage.status)
            GROUP BY text COLLATE NOCASE"""
    )
    stage.rows["status"] += new.rowcount
