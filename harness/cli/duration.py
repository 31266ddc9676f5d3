"""A duration as an option: a number with a unit, such as 90m or 7d."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FORM = re.compile(rf"(\d{{1,6}}(?:\.\d{{1,3}})?)([{''.join(UNITS)}])")


class DurationType(click.ParamType[timedelta]):
    """A positive duration."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        match = _FORM.fullmatch(str(value))
        if match is None or float(match[1]) == 0:
            units = ", ".join(f"{unit} ({word})" for unit, word in UNITS.items())
            self.fail(f'expected a number and a unit of {units}, got "{value}"', param, ctx)
        return timedelta(**{UNITS[match[2]]: float(match[1])})


DURATION = DurationType()
