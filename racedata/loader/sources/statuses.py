"""The statuses of results, for dumps that have texts of statuses but no ids."""

from importlib.resources import files

from racedata.loader.stage import Stage


def known_statuses() -> dict[str, int]:
    """The ids of the known statuses, by text: each is a line of statuses.txt.

    They are Ergast's (from 1; there is no 52 and no 57), and two that Jolpica's API added.
    """
    texts = files(__package__).joinpath("statuses.txt").read_text(encoding="utf-8")
    return {text: id for id, text in enumerate(texts.splitlines(), 1) if text}


def insert_statuses(stage: Stage, texts: str) -> None:
    """Inserts the known statuses, and new ones, which get the next ids.

    The query `texts` finds new ones, each with a number by which they are ordered. `Engine` and
    `engine` are the same.
    """
    known = known_statuses()
    stage.insert_rows("status", ["status", "statusId"], known.items())
    new = stage.db.execute(
        f"""INSERT INTO stage.status (statusId, status)
            WITH found (text, number) AS ({texts.rstrip(";")})
            SELECT {max(known.values())} + row_number() OVER (ORDER BY min(number)), text
            FROM found WHERE text COLLATE NOCASE NOT IN (SELECT status FROM stage.status)
            GROUP BY text COLLATE NOCASE"""
    )
    stage.rows["status"] += new.rowcount
