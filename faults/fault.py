"""A fault: a disturbance, the evidence of its effect, and its heal.

A fault is one file in `faults/catalogue/`: a frozen model whose fields are its YAML parameters
(units in the names), a `name`, and four methods. The harness does everything else, the same way for
all faults: it writes the intent first, waits for the effect, and heals on every path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal

from typing_extensions import TypeVar

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.engines.engine import RetainedState
from streamquake.cluster.job import CurrentJob
from streamquake.cluster.links.links import LinkPath
from streamquake.cluster.node import Node
from streamquake.cluster.runtime.runtime import InjectionTimes
from streamquake.cluster.steering import SteerableLoad
from streamquake.faults.requirement import Requirements, unmet
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, SYSTEM
from streamquake.topologies.model import Model, Topology
from streamquake.topologies.registry import Registry

TargetKind = Literal["nodes", "links", "pairs", "workload", "job"]


@dataclass(frozen=True, kw_only=True)
class LinkTarget:
    """A whole link as a target: the paths of all its node pairs."""

    name: str
    paths: tuple[LinkPath, ...]


@dataclass(frozen=True, kw_only=True)
class PairTarget:
    """Two nodes, for a fault on the connections between them: from `source` to `target`, or both
    ways.

    Named `A->B` or `A<->B`, so that the heal can find it by its name.
    """

    source: Node
    target: Node
    both_ways: bool

    @property
    def name(self) -> str:
        return f"{self.source.name}{'<->' if self.both_ways else '->'}{self.target.name}"


@dataclass(frozen=True, kw_only=True)
class WorkloadTarget:
    """The load of the run, for data faults."""

    steering: SteerableLoad
    name: str = "the workload"


@dataclass(frozen=True, kw_only=True)
class JobTarget:
    """The running job, for operations such as a savepoint."""

    job: CurrentJob
    name: str = "the job"


Target = Node | LinkTarget | PairTarget | WorkloadTarget | JobTarget
TargetT = TypeVar("TargetT", bound=Target, default=Any)
"""The kind of target of a fault; `Any` for a fault that was found by its name, where the loader has
checked that the targets fit the fault."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The evidence of a disturbance on one target: whether it is in effect, whether it is healed,
    and which observations show it.

    `in_effect` and `healed` may both be False: partly injected, partly removed, or injected without
    an effect.
    """

    in_effect: bool
    healed: bool
    in_place: bool | None = None
    """Whether everything that the injection added to the target still exists. It distinguishes a
    missing part from a system that is idle for the moment. None where the evidence cannot
    distinguish these."""
    observations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether a disturbance that was in effect has provably ended. `in_place` takes precedence
        over `healed`, which is also True for a target that has finished, such as a finished
        load."""
        return not self.in_effect and (self.healed if self.in_place is None else not self.in_place)


@dataclass(frozen=True, kw_only=True)
class JobChange:
    """The job as a fault resubmits it, so that a job that cannot work is rejected before anything
    starts."""

    keeping: RetainedState
    """The state from which it is restored."""
    parallelism: int | None
    """Parallel subtasks; None for the same number."""
    config: Mapping[str, Any]
    """Settings in addition to those that it has; they take precedence."""
    statements: str | None
    """Its new statements; None for the old ones."""
    source: str
    """The source of the statements, for messages."""


def disturbed_party(applied: bool, system: bool) -> dict[str, str]:
    """An observation for a fault that also affects a probe of the harness: whether the fault
    disturbed traffic or work of the system, or only the probe's. Empty for a fault that is not
    applied. One poll at which the system was disturbed is enough."""
    return {DISTURBED: SYSTEM if system else PROBE_ALONE} if applied else {}


class Fault(Model, Generic[TargetT]):
    """The base of every fault."""

    name: ClassVar[str]
    former_names: ClassVar[tuple[str, ...]] = ()
    """Its former names; records and experiments that contain them stay readable."""
    target_kind: ClassVar[TargetKind]
    """The kind of target it is injected into."""
    touches: ClassVar[str]
    """What it disturbs (`process`, `link`, `cpu`, `disk`, …); two faults that touch the same thing
    of one target do not overlap. A fault that touches `process` keeps the node down, so nothing
    else restarts it."""
    engines: ClassVar[tuple[str, ...]] = ()
    """The engines whose nodes it can be injected into; empty for any."""
    one_by_one: ClassVar[bool] = False
    """Whether it is injected into one target after the other, not into all at once; the first
    failed injection ends it."""
    lasts: ClassVar[bool] = True
    """Whether its effect is a state that lasts until the heal, so that it can end early. False for
    an event, such as a restart, an exception or a savepoint, after which nothing lasts."""
    shows_in_place: ClassVar[bool] = False
    """Whether its evidence has `in_place`, so that on an idle system it may be in place for a while
    and not in effect."""
    grows: ClassVar[tuple[str, ...]] = ()
    """Observations that are never smaller at a later verification, such as a count."""
    keeps: ClassVar[tuple[str, ...]] = ()
    """Observations that are the same at each verification, such as the moment of a first hit."""
    drawn: ClassVar[bool] = True
    """Whether a drawn schedule may contain it. False for a fault that loses data by design."""

    ends_process: ClassVar[bool] = False
    """Whether it ends the main process of a node, or makes the kernel end it."""
    ends_repeatedly: ClassVar[bool] = False
    """Whether it ends the process of a node more than once."""
    exit_codes: ClassVar[tuple[int, ...]] = ()
    """The exit codes of the processes that it makes end by themselves; empty where these have
    codes of their own."""
    takes_memory: ClassVar[bool] = False
    """Whether the kernel may end processes of its nodes for lack of memory."""
    ends_sandbox: ClassVar[bool] = False
    """Whether it ends the sandbox of a node, and with it the node's network."""
    leaves_agent: ClassVar[bool] = False
    """Whether an agent stays in a node's process after the heal."""
    fails_tasks: ClassVar[bool] = False
    """Whether it throws an exception inside a task, so that this one task fails."""
    statement_files: ClassVar[tuple[str, ...]] = ()
    """Parameters that name a file of SQL statements, or contain the statements themselves."""

    usual: ClassVar[str] = "flink/taskmanager-1"
    """A sensible target on the shipped topologies, as in YAML: the contract suite and the matrix of
    container tests inject it there."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters of a valid fault, used by `list`, by draws and by the contract suite."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        """Why the nodes of a role, or those of a link, are no valid target, beyond `engines`; None
        when they are. Overridden by faults that need a property of the topology."""
        return None

    @property
    def job_change(self) -> JobChange | None:
        """The job as it resubmits it; None where it submits none."""
        return None

    def statement_texts(self) -> Mapping[str, str]:
        """The text of each of `statement_files` that names a file of the user: a recorded plan
        contains the text instead of the name. Shipped files keep their name."""
        return {}

    @classmethod
    def has_baseline(cls) -> bool:
        """Whether it measures values before its injection."""
        return cls.baseline is not Fault.baseline

    def baseline(self, cluster: Cluster, target: TargetT) -> Mapping[str, Any]:
        """The values before the injection, with which the evidence is compared: plain data, stored
        with the intent. May be measured some seconds before the injection."""
        return {}

    def inject(self, cluster: Cluster, target: TargetT) -> InjectionTimes:
        """Inject the fault into one target."""
        raise NotImplementedError

    def evidence(self, cluster: Cluster, target: TargetT, baseline: Mapping[str, Any]) -> Evidence:
        """Observe whether the fault is in effect on the target now. Must also work in a process
        that did not inject the fault. With an empty baseline it is as exact as possible."""
        raise NotImplementedError

    def effect_requires(self, before: Mapping[str, Any]) -> Requirements:
        """What the observations of `evidence` must be where it is in effect, as far as each alone
        tells, so that a changed record is noticed. `before` is the baseline."""
        return {}

    def heal_requires(self, before: Mapping[str, Any]) -> Requirements:
        """The same where it is healed."""
        return {}

    def observed_parts(self, topology: Topology, target: str) -> Mapping[str, Set[str]]:
        """Observation -> the names of all parts of the target that it must have, no more and no
        fewer; empty where a target has no parts."""
        return {}

    def contradicted_effect(
        self, observations: Mapping[str, Any], before: Mapping[str, Any]
    ) -> Iterator[str]:
        """A message for each observation of a recorded effect that shows that there was none."""
        yield from unmet(observations, self.effect_requires(before))

    def heal(
        self, cluster: Cluster, target: TargetT, baseline: Mapping[str, Any]
    ) -> InjectionTimes:
        """Undo it. May run twice, also when the fault was never injected; a target that was removed
        counts as healed."""
        raise NotImplementedError


class NodeFault(Fault[Node]):
    """The base of every fault that is injected into nodes, one node at a time."""

    target_kind: ClassVar[TargetKind] = "nodes"


class LinkFault(Fault[LinkTarget]):
    """The base of every fault that is injected into a link as a whole."""

    target_kind: ClassVar[TargetKind] = "links"
    touches: ClassVar[str] = "link"
    usual: ClassVar[str] = "link sink"


class JobFault(Fault[JobTarget]):
    """The base of every operation on the running job."""

    target_kind: ClassVar[TargetKind] = "job"
    usual: ClassVar[str] = "the job"


faults: Registry[Fault] = Registry("fault", "streamquake.faults.catalogue", base=Fault)
