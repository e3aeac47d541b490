"""All rows, for the scoreboard."""

from __future__ import annotations

from scenarios import clean_cube, clean_vector, init, race_cross, race_cube, race_vector
from scenarios.model import Scenario

RACE: tuple[Scenario, ...] = (*race_vector.ROWS, *race_cube.ROWS, *race_cross.ROWS)
INIT: tuple[Scenario, ...] = init.ROWS
CLEAN: tuple[Scenario, ...] = (*clean_vector.ROWS, *clean_cube.ROWS)
ALL = (*RACE, *INIT, *CLEAN)
