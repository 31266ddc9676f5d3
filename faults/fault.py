"""What a fault is: a disturbance, the proof that it bites, and its undoing.

A fault is one file in `faults/catalogue/`: a frozen model whose fields are its YAML parameters
(units in the names), a `name`, and four methods. Everything else (intents written first, waiting
for the effect, healing on every path) is the harness's and the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from streamquake.reports.record.event import DISTURBED, PROBE_ALONE, SYSTEM
from streamquake.topologies.model import Model, Topology
from streamquake.topologies.registry import Registry

TargetKind = Literal["nodes", "links", "pairs", "workload", "job"]


@dataclass(frozen=True, kw_only=True)
class LinkTarget:
    """A whole link as a target: every node pair's path of it."""

    name: str
    paths: tuple[LinkPath, ...]


@dataclass(frozen=True, kw_only=True)
class PairTarget:
    """Two nodes, for what disturbs the way between them: from `source` to `target`, or both ways.

    Named `A->B` or `A<->B`, so that it can be found again when it is healed.
    """

    source: Node
    target: Node
    both_ways: bool

    @property
    def name(self) -> str:
        return f"{self.source.name}{'<->' if self.both_ways else '->'}{self.target.name}"


@dataclass(frozen=True, kw_only=True)
class WorkloadTarget:
    """The load of the run, for what disturbs the data."""

    steering: SteerableLoad
    name: str = "the workload"


@dataclass(frozen=True, kw_only=True)
class JobTarget:
    """The running job, for operations such as a savepoint."""

    job: CurrentJob
    name: str = "the job"


Target = Node | LinkTarget | PairTarget | WorkloadTarget | JobTarget
TargetT = TypeVar("TargetT", bound=Target, default=Any)
"""The kind of target of a fault; any, of a fault that is found by its name: the loader has checked
that targets fit what the fault aims at."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was seen of a disturbance on one target: whether it bites, and by which signs.

    `in_effect` and `gone` may both be False: half laid, half removed, or laid without a bite.
    """

    in_effect: bool
    gone: bool
    in_place: bool | None = None
    """Whether all that the injection put there is there still, which tells a part that is missing
    from a system that is idle for the moment; None where a look does not tell that apart."""
    seen: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether a disturbance that was in effect is proven to be so no more; what is in place
        outranks `gone`, which is also True of a target that is through, such as a finished load."""
        return not self.in_effect and (self.gone if self.in_place is None else not self.in_place)


@dataclass(frozen=True, kw_only=True)
class JobChange:
    """The job as a fault submits it anew, so that what cannot work is refused before anything
    starts."""

    keeping: RetainedState
    """From what it is restored."""
    parallelism: int | None
    """Parallel subtasks; None leaves them as they are."""
    config: Mapping[str, Any]
    """Settings above those that it has."""
    statements: str | None
    """Its other statements; None leaves them as they are."""
    source: str
    """Where these stand, for messages."""


def disturbed_party(applied: bool, system: bool) -> dict[str, str]:
    """For `Evidence.seen`, of a fault that a probe of ours shows too: whose traffic or work it
    disturbed, the system's or the probe's alone; nothing of one that is not laid. One look at which
    the system was disturbed will do."""
    return {DISTURBED: SYSTEM if system else PROBE_ALONE} if applied else {}


class Fault(Model, Generic[TargetT]):
    """The base of every fault."""

    name: ClassVar[str]
    former_names: ClassVar[tuple[str, ...]] = ()
    """Names that it had before: records and experiments with them stay readable."""
    target_kind: ClassVar[TargetKind]
    """What kind of target it strikes."""
    touches: ClassVar[str]
    """What it disturbs (`process`, `link`, `cpu`, `disk`, …); two faults that touch the same thing
    of one target do not overlap. `process` keeps the node itself down: nobody else starts it."""
    engines: ClassVar[tuple[str, ...]] = ()
    """The engines whose nodes it can strike; empty for any."""
    one_by_one: ClassVar[bool] = False
    """Whether its targets are struck one after the other, not all at once; the first that cannot
    be struck ends it."""
    lasts: ClassVar[bool] = True
    """Whether its effect is a state that lasts until the heal, so that it can end early; not an
    event, such as a restart, an exception or a savepoint, after which nothing is held."""
    drawn: ClassVar[bool] = True
    """Whether a drawn schedule may hold it: not what loses data by design."""

    leaves_agent: ClassVar[bool] = False
    """Whether an agent stays in a node's process after the heal."""
    fails_tasks: ClassVar[bool] = False
    """Whether it throws an exception inside a task, so that this one task fails by it."""
    statement_files: ClassVar[tuple[str, ...]] = ()
    """Parameters that name a file of statements, or hold the statements themselves."""

    usual: ClassVar[str] = "flink/taskmanager-1"
    """A target, as in YAML, that it strikes sensibly on the shipped topologies: where the contract
    suite and the matrix of real faults strike it."""
    example: ClassVar[Mapping[str, Any]] = {}
    """Parameters that make a valid fault, shown by `list`, used by draws and the contract suite."""

    @classmethod
    def role_problem(cls, topology: Topology, role: str) -> str | None:
        """Why it makes no sense on the nodes of a role (or on a link's), beyond `engines`; None
        when it does. Overridden by faults that need something special of the topology."""
        return None

    @property
    def job_change(self) -> JobChange | None:
        """The job as it submits it anew; None where it submits none."""
        return None

    def statement_texts(self) -> Mapping[str, str]:
        """The text for each of `statement_files` that names a file of the user's own: a recorded
        plan holds it in the place of the name. Shipped ones keep their name."""
        return {}

    def baseline(self, cluster: Cluster, target: TargetT) -> Mapping[str, Any]:
        """What is measured before injecting, for the evidence to compare with: plain data, kept
        with the intent. May be taken some seconds ahead of the strike."""
        return {}

    def inject(self, cluster: Cluster, target: TargetT) -> InjectionTimes:
        """Disturb one target."""
        raise NotImplementedError

    def evidence(self, cluster: Cluster, target: TargetT, baseline: Mapping[str, Any]) -> Evidence:
        """Look whether the disturbance can be seen on the target now; must work in another
        process than the one that injected. With an empty baseline: as far as can be said."""
        raise NotImplementedError

    def heal(
        self, cluster: Cluster, target: TargetT, baseline: Mapping[str, Any]
    ) -> InjectionTimes:
        """Undo it. May run twice, also when it was never injected; a target that is gone is
        healed."""
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


faults: Registry[Fault] = Registry("fault", "streamquake.faults.catalogue")
