"""A shard as an option: K/N, such as 2/6."""

from __future__ import annotations

import re
from typing import Any

import click

from streamquake.harness.campaign.suite.shards import Shard

LARGEST = 1000
_FORM = re.compile(r"(\d{1,4})/(\d{1,4})")


class ShardType(click.ParamType[Shard]):
    """A part of N parts, counted from 1."""

    name = "K/N"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Shard:
        if isinstance(value, Shard):
            return value
        match = _FORM.fullmatch(str(value))
        number, of = (int(match[1]), int(match[2])) if match else (0, 0)
        if not 1 <= number <= of <= LARGEST:
            self.fail(f'expected K/N with K from 1 to N, such as 2/6, got "{value}"', param, ctx)
        return Shard(number=number, of=of)


SHARD = ShardType()
