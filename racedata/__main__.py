"""`python -m racedata`: the same as the command `racedata`."""

from racedata.cli import main

if __name__ == "__main__":
    main()
