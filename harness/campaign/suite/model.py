"""The YAML of a suite: rows, each an experiment, or a claim shown by one or more experiments.

name: claims
rows:
  - experiment: quickstart                  # a plain row: its outcome is the expected one
  - claim: Unaligned checkpoints complete under back-pressure where aligned ones time out.
    article: the article on unaligned checkpoints
    setting: execution.checkpointing.unaligned, with the sink's link slow
    experiment: unaligned-under-pressure    # shows the claim
    control: aligned-under-pressure         # the same without the setting; has its own `expect`
    figures: [checkpoints.median_ms]        # CHECK.COUNT of the results, shown side by side
    relations:
      - {figure: checkpoints.median_ms, control_over_claim_at_least: 10}
    repeats: 3
    note: measured on one machine
    quarantined: the fault is too late on slow disks    # run and shown, but does not count
  - claim: The outage follows the heartbeat time-out.
    article: the article on time-outs
    published: an outage of 50 s at a time-out of 50 s
    setting: heartbeat.timeout 5, 10 and 20 s
    experiment: silent-20s
    at: 20                                  # its x on the line
    series: [{experiment: silent-5s, at: 5}, {experiment: silent-10s, at: 10}]
    slopes: [{figure: recovery.detected_s, at_least: 0.8, at_most: 1.2}]
  - claim: It was worse in version 1.
    article: the release notes of version 2
    unavailable: no image of version 1      # not left out: shown, and counted apart
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from streamquake.topologies.limits import Finite, Positive, Seed
from streamquake.topologies.model import Model, Title

NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Figure = Annotated[str, Field(min_length=3)]


MEASURED = ("experiment", "setting", "control", "figures", "relations", "at", "series", "slopes")
"""The keys that only a measured row may have."""


class Relation(Model):
    """Bounds on a figure; the claim holds only within every given bound. The figure is the
    median over the repeats, of the claim's experiment and of the control's."""

    figure: Figure
    control_over_claim_at_least: Positive | None = None
    """The control's figure divided by the claim's."""
    claim_over_control_at_least: Positive | None = None
    claim_at_least: Finite | None = None
    claim_at_most: Finite | None = None
    control_at_least: Finite | None = None
    control_at_most: Finite | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that were given, by name."""
        given = self.model_dump(exclude={"figure"}, exclude_none=True)
        return {name: float(value) for name, value in given.items()}

    @property
    def of_control(self) -> bool:
        """Whether a bound needs the control's figure."""
        return any("control" in name for name in self.bounds)

    @model_validator(mode="after")
    def _bounded(self) -> Relation:
        if not self.bounds:
            names = ", ".join(f"`{name}`" for name in type(self).model_fields if name != "figure")
            raise ValueError(f"expected at least one bound beside `figure`: {names}")
        return self


class SeriesPoint(Model):
    """A further experiment of a row, whose figures form a line with the row's own."""

    experiment: NonEmptyText
    at: Finite | None = None
    """Its x on the line, for slopes that are not over a figure."""


class Slope(Model):
    """Bounds on the slope of the line through a figure of all runs of a series, fitted by least
    squares with a free intercept."""

    figure: Figure
    over: Figure | None = None
    """The figure that is the line's `x`; without it, `at` of each experiment is."""
    at_least: Finite | None = None
    at_most: Finite | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Slope:
        if self.at_least is None and self.at_most is None:
            raise ValueError("expected at least one of `at_least` and `at_most` beside `figure`")
        return self


class RowSource(Model):
    """One row of a suite."""

    experiment: NonEmptyText | None = None
    """A shipped experiment by name, or one by path, from the suite's own folder. Only a claim that
    is `unavailable` has none."""
    claim: NonEmptyText | None = None
    """What is claimed, as a sentence; without it the row is only an experiment."""
    article: NonEmptyText | None = None
    """Who claims it, by subject."""
    published: NonEmptyText | None = None
    """What was measured elsewhere, in its own figures."""
    unavailable: NonEmptyText | None = None
    """Why the claim cannot be measured here. Such a row has no experiment, and no outcome."""
    setting: NonEmptyText | None = None
    """The cause: the setting that the experiment has and the control does not have."""
    control: NonEmptyText | None = None
    """The experiment without the setting, where the claimed effect must not be observed."""
    figures: tuple[Figure, ...] = ()
    """The figures to show, as CHECK.COUNT of the results."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often each experiment of the row is run, each time with the next seed."""
    relations: tuple[Relation, ...] = ()
    at: Finite | None = None
    """The x of the row's own experiment on the line of the series."""
    series: tuple[SeriesPoint, ...] = ()
    slopes: tuple[Slope, ...] = ()
    quarantined: NonEmptyText | None = None
    """Why the row does not count in the verdict of the suite. It is run and shown."""
    note: NonEmptyText | None = None
    """What the reader of the table must know, such as a version that is not available."""

    @model_validator(mode="after")
    def _measured_or_explained(self) -> RowSource:
        if self.unavailable is None:
            if self.experiment is None:
                raise ValueError("expected the key `experiment`, or `unavailable` with the reason")
            return self
        for name in MEASURED:
            if getattr(self, name) not in (None, ()):
                raise ValueError(f"`{name}` is not allowed in a row that is `unavailable`")
        if self.claim is None or self.article is None:
            missing = "claim" if self.claim is None else "article"
            raise ValueError(f"a row that is `unavailable` needs the key `{missing}`")
        return self

    @model_validator(mode="after")
    def _slopes_have_points(self) -> RowSource:
        if bool(self.slopes) != bool(self.series):
            present, missing = ("slopes", "series") if self.slopes else ("series", "slopes")
            raise ValueError(f"`{present}` needs the key `{missing}`")
        placed = [self.at, *(point.at for point in self.series)]
        if None in placed and any(slope.over is None for slope in self.slopes):
            raise ValueError(
                "a slope without `over` is over `at`: expected that key at the row and at every "
                "experiment of `series`"
            )
        return self

    @model_validator(mode="after")
    def _claims_are_complete(self) -> RowSource:
        if self.claim is None:
            for name in ("article", "published", "setting", "control", "relations", "slopes"):
                if getattr(self, name):
                    raise ValueError(f"`{name}` belongs to a claim: expected the key `claim`")
        elif self.unavailable is not None:
            return self
        elif self.article is None or self.setting is None:
            missing = "article" if self.article is None else "setting"
            raise ValueError(f"a claim needs the key `{missing}`")
        elif self.control is None and any(relation.of_control for relation in self.relations):
            raise ValueError("a relation needs the control's figure: expected the key `control`")
        return self


class SuiteSource(Model):
    """A suite's YAML."""

    name: Title
    description: str = ""
    seed: Seed | None = None
    rows: Annotated[tuple[Mapping[str, Any], ...], Field(min_length=1)]
    """Each row is a `RowSource`, parsed separately, so that an invalid row hides no other problem.
    """
