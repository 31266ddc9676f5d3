"""The damage of an output's record, and the search for repeated places."""

from __future__ import annotations

from typing import Any

import pytest

from streamquake.harness.verdict.evidence.record_damage import (
    RecordDamage,
    damage_of,
    reading_problem,
)


class Stored:
    """The record of an output with some damage."""

    def __init__(self, miscount: str, repeated: int, misplaced: str = "") -> None:
        self._miscount, self._repeated, self._misplaced = miscount, repeated, misplaced
        self.searched = self.shared = False
        self.other = self.lost = ""

    def of_another(self, place: str) -> str:
        assert place == "totals"
        return self.other

    def lost_files(self) -> str:
        return self.lost

    def miscount(self) -> str:
        return self._miscount

    def misplaced(self) -> str:
        return self._misplaced

    def unplaced(self) -> int:
        assert self._misplaced, "records are only counted where some are misplaced"
        return 4

    def repeats_places(self) -> bool:
        return self.shared

    def repeated_records(self) -> int:
        self.searched = True
        return self._repeated


COPIES = "1,200 records have the position of another record and were not read"


@pytest.mark.parametrize(
    ("miscount", "repeated", "message"),
    [
        ("", 0, ""),
        ("8 records are missing", 0, "8 records are missing"),
        ("", 1200, COPIES),
        ("8 records are missing", 1200, f"8 records are missing; {COPIES}"),
    ],
)
def test_all_damage_is_named(miscount: str, repeated: int, message: str) -> None:
    stored: Any = Stored(miscount, repeated)
    damage = damage_of(stored, duplicated=True)
    assert damage == RecordDamage(message=message, repeated=repeated)


def test_repeated_places_are_searched_only_where_records_may_share_one() -> None:
    stored: Any = Stored("", 3)
    assert damage_of(stored, duplicated=False) == RecordDamage(message="", repeated=0)
    assert not stored.searched
    stored.shared = True
    assert damage_of(stored, duplicated=False).repeated == 3


def test_records_at_places_that_were_not_read_are_damage() -> None:
    stored: Any = Stored("", 0, "a record is stored at offset 9")
    damage = damage_of(stored, duplicated=False)
    assert (damage.message, damage.unplaced) == ("a record is stored at offset 9", 4)


def test_the_problem_of_a_reading_is_the_first_that_explains_the_others() -> None:
    stored: Any = Stored("", 2)
    assert reading_problem(stored, "totals") == ""
    stored.shared = True
    assert reading_problem(stored, "totals") == (
        "2 records have the position of another record and were not read"
    )
    stored.lost = "1 of 8 files are missing"
    assert reading_problem(stored, "totals") == stored.lost
    stored.other = "others was read, and the output is totals"
    assert reading_problem(stored, "totals") == stored.other
