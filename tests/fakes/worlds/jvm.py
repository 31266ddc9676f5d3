"""The JVMs of a fake cluster: an attached agent, its rules, and a job that enters the steps.

Each TaskManager runs one task with three operators. At each LIST command of the agent the job has
entered each step once, a task that failed by a rule has restored its state, and the rules have
acted. A restarted JVM has neither agent nor rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from streamquake.cluster.cluster import Cluster
from streamquake.cluster.jvm_agent import ATTACH, CONVERSE, END, NOT_LISTENING
from streamquake.cluster.runtime.fake_runtime import FakeRuntime
from streamquake.cluster.runtime.runtime import ContainerSpec, ExecResult

OPERATORS = ("Source: input[1]", "Calc[2]", "sink[3]: Writer", "sink[3]: Committer")
TASK = " -> ".join(OPERATORS)
CLASS = re.compile(r"^CLASS (\S+)$", re.MULTILINE)
CONTAINS = re.compile(r'name\.contains\("([^"]*)"\)')
EQUALS = re.compile(r'subtask\.equals\("(\d+)"\)')
LIMIT = re.compile(r'incrementCounter\("([^"]*)"\) <= (\d+)')
KEY = re.compile(r'System\.setProperty\("([^"]+)\.hits"')


@dataclass
class Jvm:
    """One JVM: the rules, properties and counters of its agent, and whether its task must be
    restored."""

    subtask: int
    rules: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    failed: bool = False

    def answer(self, command: str) -> str:
        """The listener's answer to a command, without its last line."""
        word, *lines = command.split("\n")
        match word:
            case "VERSION":
                return "4.0.25\n"
            case "LIST":
                self._enter_steps()
                listed = (f"# File streamquake line 1\n{text}" for text in self.rules.values())
                return "".join(listed) or "no rules installed\n"
            case "LISTSYSPROPS":
                return "".join(f"{key}={value}\n" for key, value in self.properties.items())
            case "LOAD":
                return self._load("\n".join(lines))
            case "DELETE":
                return "".join(self._delete(line[5:]) for line in lines if line[:5] == "RULE ")
            case "SETSYSPROPS":
                for line in lines:
                    self.properties.pop(line.rstrip("="), None)
                return ""
        return f"ERROR\nUnexpected command {word}\n"

    def _load(self, script: str) -> str:
        found = re.findall(r"^(RULE (.+)\n(?:.*\n)*?ENDRULE\n)", script, re.MULTILINE)
        if not found:
            return "EXCEPTION org.jboss.byteman.rule.exception.ParseException\n"
        self.rules.update({name: text for text, name in found})
        return "".join(f"install rule {name}\n" for _, name in found)

    def _delete(self, name: str) -> str:
        if self.rules.pop(name, None) is None:
            return f"ERROR failed to find loaded rule with name {name}\n"
        return f"uninstall RULE {name}\n"

    def _enter_steps(self) -> None:
        restoring, self.failed = self.failed, False
        for text in self.rules.values():
            if restoring or "METHOD restore" not in text:
                self._enter(text)

    def _enter(self, text: str) -> None:
        """Let each thread that the rule matches enter the rule's method."""
        of_task = "<operator_name>" not in text
        served = [TASK] if of_task else [name for name in OPERATORS if _enters(text, name)]
        required = CONTAINS.findall(text.replace(f'"({self.subtask + 1}/"', '""'))
        subtask = EQUALS.search(text)
        if subtask and int(subtask[1]) != self.subtask:
            return
        for name in served:
            if all(words in name for words in required):
                self._hit(text, f"{name} subtask {self.subtask}")

    def _hit(self, text: str, place: str) -> None:
        limit = LIMIT.search(text)
        assert limit is not None
        if self._count(limit[1]) > int(limit[2]):
            return
        self.failed = self.failed or "throw new" in text
        if (key := KEY.search(text)) is not None:
            hits = self._count(f"{limit[1]} hits")
            self.properties[f"{key[1]}.hits"] = str(hits)
            self.properties.setdefault(f"{key[1]}.first", "2026-01-01T00:00:00.000001Z")
            self.properties[f"{key[1]}.at.{hash(place)}"] = place

    def _count(self, name: str) -> int:
        self.counters[name] = self.counters.get(name, 0) + 1
        return self.counters[name]


class Jvms:
    """The JVMs with a loaded agent, by container name and start."""

    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime
        self._attached: dict[tuple[str, str], Jvm] = {}

    def attach(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if ATTACH not in argv:
            return None
        subtask = int(spec.name.rpartition("-")[2]) - 1
        self._attached.setdefault(self._process_key(spec), Jvm(subtask=subtask))
        return ExecResult(exit_code=0, output="0\nreturn code: 0\n")

    def converse(self, spec: ContainerSpec, argv: Sequence[str]) -> ExecResult | None:
        if CONVERSE not in argv:
            return None
        jvm = self._attached.get(self._process_key(spec))
        if jvm is None:
            return ExecResult(exit_code=NOT_LISTENING, output="")
        commands = argv[argv.index(CONVERSE) + 4 :]
        return ExecResult(exit_code=0, output="".join(jvm.answer(c) + END for c in commands))

    def of(self, name: str) -> Jvm:
        """The JVM of a container with a loaded agent."""
        return self._attached[self._process_key(self._runtime.by_name(name).spec)]

    def _process_key(self, spec: ContainerSpec) -> tuple[str, str]:
        return spec.name, self._runtime.by_name(spec.name).state.started_at


def _enters(text: str, operator: str) -> bool:
    """Whether an operator enters the method of a rule that serves single operators."""
    found = CLASS.search(text)
    assert found is not None
    if found[1].endswith("CommitterOperator"):
        return operator.endswith("Committer")
    if found[1].endswith("SinkWriterOperator"):
        return operator.endswith("Writer")
    if found[1].endswith("SourceOperator"):
        return operator.startswith("Source")
    return not found[1].endswith(("TwoInputProcessorFactory$StreamTaskNetworkOutput",))


def install(cluster: Cluster) -> None:
    """Give every container a JVM to which the agent can attach."""
    runtime = cluster.runtime
    assert isinstance(runtime, FakeRuntime)
    jvms = Jvms(runtime)
    runtime.on_exec.append(jvms.attach)
    runtime.on_network_tool.append(jvms.converse)
