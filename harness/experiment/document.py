"""Parsing of an experiment's YAML, part by part: short forms become the values that they mean.

Each function returns what it could parse, and every problem that it found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import model_validator

from streamquake.cluster.engines.engine import engines
from streamquake.faults.fault import faults
from streamquake.faults.schedule.random_schedule import Draw
from streamquake.faults.schedule.step import Step, TriggerSpec
from streamquake.harness.experiment.check import Check, checks
from streamquake.harness.experiment.model import Expectation, Job, Limits
from streamquake.harness.experiment.trigger_document import trigger_problems
from streamquake.harness.experiment.workload import Workload, workloads
from streamquake.topologies.limits import Limit, Seed, ZeroOrMore
from streamquake.topologies.model import Model, Name, Title
from streamquake.topologies.parsing import parse, validate_data, value_at, value_text
from streamquake.topologies.problems import Problem, did_you_mean
from streamquake.topologies.registry import Registry
from streamquake.topologies.yaml_document import Document, Place

Problems = list[Problem]
M = TypeVar("M", bound=Model)


class ExperimentSource(Model):
    """An experiment's YAML: topology by name, SQL by file, faults and checks in short forms."""

    name: Title
    """What `streamquake run` and records call it."""
    description: str = ""
    """What `streamquake list experiments` shows."""
    topology: str | Mapping[str, Any]
    """A topology by name or file, or written here."""
    job: Job | None = None
    """What runs on the engine. Without a job the input topic itself is judged."""
    other_jobs: Mapping[Name, Job] = {}
    """Name -> a job that runs beside `job` on the same engine, with the same keys: an earlier or
    later stage, or one that competes for slots. They are submitted first, in this order, and what
    they write is not judged."""
    workload: Mapping[str, Mapping[str, Any] | None]
    """One workload by name with its parameters."""
    faults: tuple[Mapping[str, Any], ...] = ()
    """The schedule, one entry a step."""
    draw: Draw | None = None
    """A schedule drawn from the seed, in place of `faults`."""
    checks: tuple[str | Mapping[str, Mapping[str, Any] | None], ...] = ()
    """Checks beside those of every run: names, or names with parameters."""
    limits: Limits = Limits()
    """How long each part of the run may take."""
    seed: Seed | None = None
    """Fixes load, targets and drawn schedule; `--seed` wins, and without both one is drawn."""
    expect: Expectation = "held"
    """The expected outcome of the run, or the expected findings of named checks."""

    @model_validator(mode="after")
    def _one_schedule(self) -> ExperimentSource:
        if self.faults and self.draw is not None:
            raise ValueError("expected one schedule: `faults` written, or `draw` with a profile")
        return self


class StepSource(Model):
    """The keys beside the fault's name in an entry of `faults`."""

    target: str
    """What the fault is injected into, in the grammar below."""
    when: TriggerSpec | None = None
    """The trigger, or engine -> trigger where several engines may run the job."""
    at_s: ZeroOrMore | None = None
    """The trigger as seconds after steady state."""
    for_s: Limit | None = None
    """Seconds from effect to heal; until the end of the disturbance when left out."""

    @model_validator(mode="after")
    def _one_trigger(self) -> StepSource:
        if (self.when is None) == (self.at_s is None):
            raise ValueError(
                "expected one trigger: `at_s: SECONDS` or `when: {...}`, such as "
                "`when: {event: checkpoint triggered}`, "
                + ("got none" if self.when is None else "got both")
            )
        return self

    @property
    def trigger(self) -> TriggerSpec:
        return self.when or TriggerSpec(after_s=self.at_s)


def step_of(document: Document, at: Place, engine: str | None) -> tuple[Step | None, Problems]:
    """One entry of `faults`: `{kill: {}, target: …, at_s: 20, for_s: 5}`; `engine` is what runs the
    job, where a trigger is given for each."""
    entry, wrong = _for_engine(document, at, engine)
    name, problems = _fault_name(document, at, entry)
    problems += wrong
    rest = {key: value for key, value in entry.items() if key in StepSource.model_fields}
    source, wrong = validate_data(StepSource, rest, document, at)
    problems += wrong
    if source is not None and source.when is not None and entry.get("when") is not source.when:
        problems += trigger_problems(document, (*at, "when"), source.when)
    if name is None:
        return None, problems
    params = {} if entry[name] is None else entry[name]
    problems += validate_data(faults[name], params, document, (*at, name))[1]
    if source is None or not isinstance(params, Mapping):
        return None, problems
    step = Step(
        fault=name, params=params, target=source.target, when=source.trigger, for_s=source.for_s
    )
    return step, problems


def _for_engine(
    document: Document, at: Place, engine: str | None
) -> tuple[Mapping[str, Any], Problems]:
    """The entry with the trigger of this engine, where `when` has a trigger for each engine."""
    entry: Mapping[str, Any] = value_at(document.data, at)
    by_engine = entry.get("when")
    if (
        not isinstance(by_engine, Mapping)
        or not by_engine
        or not all(e in engines for e in by_engine)
    ):
        return entry, []
    place = (*at, "when")
    problems: Problems = []
    found: dict[str, TriggerSpec | None] = {}
    for name, given in by_engine.items():
        when, wrong = validate_data(TriggerSpec, given, document, (*place, name))
        found[name] = when
        problems += wrong
        if when is not None:
            problems += trigger_problems(document, (*place, name), when)
    if engine is not None and engine not in found:
        message = f"the job runs on {engine}, and the trigger is given for {', '.join(found)} only"
        problems.append(document.problem(place, f"{message}; write `{engine}: {{...}}` too"))
    chosen = next(iter(found.values())) if engine is None else found.get(engine)
    # A missing trigger is in `problems` already; the rest of the entry is still parsed.
    return {**entry, "when": chosen or TriggerSpec(after_s=0)}, problems


def _fault_name(document: Document, at: Place, entry: Any) -> tuple[str | None, Problems]:
    """The one key that names a fault; every other unknown key is a problem."""
    others = [key for key in entry if key not in StepSource.model_fields]
    named = [key for key in others if key in faults]
    if len(named) == 1:
        return named[0], [
            document.problem((*at, key), f'unknown key "{key}"{did_you_mean(key, _step_keys())}')
            for key in others
            if key not in named
        ]
    if named:
        message = f"expected one fault, got {' and '.join(named)}: give each an entry of its own"
        return None, [document.problem(at, message)]
    if not others:
        message = f"expected a fault by name, such as `kill: {{}}`; known: {', '.join(faults)}"
        return None, [document.problem(at, message)]
    return None, [
        document.problem((*at, key), f'no fault is called "{key}"{did_you_mean(key, faults)}')
        for key in others
    ]


def _step_keys() -> tuple[str, ...]:
    return tuple(StepSource.model_fields)


def checks_of(document: Document) -> tuple[tuple[Check, ...], Problems]:
    """The entries of `checks`: a name alone, or a name with its parameters."""
    entries = value_at(document.data, ("checks",))
    found: dict[str, Check | None] = {}
    problems: Problems = []
    for number, entry in enumerate(entries if isinstance(entries, tuple) else ()):
        at: Place = ("checks", number)
        short = isinstance(entry, str)
        named = {entry: {}} if short else entry if isinstance(entry, Mapping) else {}
        if entry == {}:
            message = f"expected a check by name; known: {', '.join(checks)}"
            problems.append(document.problem(at, message))
        for name, params in named.items():
            place = at if short else (*at, name)
            check, wrong = _member(checks, name, params, document, place)
            problems += wrong
            title = name if check is None else check.title
            if title != name and title in checks:
                message = f'"{title}" is the name of another check; choose another one'
                problems.append(document.problem((*place, "name"), message))
            if title in found:
                problems.append(document.problem(place, f'the check "{title}" is given twice'))
            found[title] = check
    return tuple(check for check in found.values() if check is not None), problems


def workload_of(document: Document) -> tuple[Workload | None, Problems]:
    """`workload: {numbered: {...}}`: exactly one, by name."""
    named = value_at(document.data, ("workload",))
    if not isinstance(named, Mapping):
        return None, []
    at: Place = ("workload",)
    problems: Problems = []
    if len(named) != 1:
        message = f"expected one workload by name, got {value_text(list(named))}"
        problems.append(document.problem(at, f"{message}; known: {', '.join(workloads)}"))
    workload = None
    for name, params in named.items():
        workload, wrong = _member(workloads, name, params, document, (*at, name))
        problems += wrong
    return workload, problems


def _member(
    members: Registry[M], name: str, params: Any, document: Document, at: Place
) -> tuple[M | None, Problems]:
    """The member of that name with its parameters, as far as it could be parsed."""
    if name not in members:
        message = f'no {members.kind} is called "{name}"{did_you_mean(name, members)}'
        return None, [document.problem(at, message)]
    return validate_data(members[name], {} if params is None else params, document, at)


def source_of(document: Document) -> tuple[ExperimentSource | None, Problems]:
    """The document as a whole."""
    return parse(ExperimentSource, document)
