"""The steps inside a TaskManager's JVM at which faults act, and the method of Flink for each.

Classes, methods and fields are those of Flink 1.20 and 2.2. If a method serves an operator, the
operator's metric variables contain its name and subtask. If a method serves a whole task, the
task's variables do, and the task's name contains the names of the operators chained into it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

STREAMING = "org.apache.flink.streaming"
OPERATOR = f"{STREAMING}.api.operators.StreamOperator"


@dataclass(frozen=True, kw_only=True)
class RuleLocation:
    """A method at the entry of which a rule acts, in the rule language.

    `who` binds `name` and `place` to the operator or task that the method serves, and `named` is a
    part of every such name; `is_subtask` is the condition for one subtask, whose `{subtask}` counts
    from 0 and whose `{ordinal}` counts from 1.
    """

    clazz: str
    method: str
    who: str
    is_subtask: str
    named: str = ""


def _of_operator(clazz: str, method: str, operator: str, named: str = "") -> RuleLocation:
    """A step of one operator; `operator` is the expression for it."""
    location = _location(
        clazz,
        method,
        "<operator_name>",
        # An input need not be an operator: each of several inputs of one operator is not.
        f"it:Object = {operator};\n"
        f"operator:{OPERATOR} = it instanceof {OPERATOR} ? it : null;\n"
        "variables:java.util.Map = operator == null ? java.util.Collections.emptyMap()"
        " : operator.getMetricGroup().getAllVariables();\n",
    )
    return replace(location, named=named)


def _of_task(clazz: str, method: str, environment: str) -> RuleLocation:
    """A step of a whole task; `environment` is the expression for the task's environment."""
    return _location(
        clazz,
        method,
        "<task_name>",
        f"variables:java.util.Map = {environment}.getMetricGroup().getAllVariables();\n",
    )


def _location(clazz: str, method: str, named: str, variables: str) -> RuleLocation:
    return RuleLocation(
        clazz=clazz,
        method=method,
        who=f"{variables}"
        f'name:String = "" + variables.get("{named}");\n'
        'subtask:String = "" + variables.get("<subtask_index>");\n'
        'place:String = name + " subtask " + subtask',
        is_subtask='subtask.equals("{subtask}")',
    )


_TASKS = f"{STREAMING}.runtime.tasks"
_IO = f"{STREAMING}.runtime.io"
_SINK = f"{STREAMING}.runtime.operators.sink"

RECORD = (
    _of_operator(
        f"{_TASKS}.OneInputStreamTask$StreamTaskNetworkOutput", "emitRecord", "$0.operator"
    ),
    _of_operator(
        f"{_IO}.StreamTwoInputProcessorFactory$StreamTaskNetworkOutput", "emitRecord", "$0.operator"
    ),
    _of_operator(f"{_TASKS}.ChainingOutput", "pushToOperator", "$0.input"),
    _of_operator(f"{_TASKS}.CopyingChainingOutput", "pushToOperator", "$0.input"),
    _of_operator(f"{STREAMING}.api.operators.SourceOperator", "emitNext", "$0"),
)
"""An operator receives a record: from the network, from the operator before it in a chain, or, for
a source, from its splits."""
INPUT = (_of_task(f"{_TASKS}.StreamTask", "processInput", "$0.getEnvironment()"),)
"""A running task polls its next input."""
SNAPSHOT = (_of_operator(f"{_TASKS}.RegularOperatorChain", "buildOperatorSnapshotFutures", "$3"),)
"""The synchronous part of an operator's checkpoint: the task processes no record meanwhile."""
UPLOAD = (
    _of_task(
        f"{_TASKS}.AsyncCheckpointRunnable", "finalizeNonFinishedSnapshots", "$0.taskEnvironment"
    ),
)
"""The asynchronous part of a task's checkpoint: its state is written while the task continues."""
PRECOMMIT = (
    _of_operator(f"{_SINK}.SinkWriterOperator", "prepareSnapshotPreBarrier", "$0", named="Writer"),
)
"""A sink's writer flushes and prepares the transaction to commit, ahead of the barrier."""
COMMIT = (_of_operator(f"{_SINK}.CommitterOperator", "commitAndEmit", "$0", named="Committer"),)
"""A sink's committer commits what a checkpoint prepared, including what a restore recovered."""
RESTORE = (_of_task(f"{_TASKS}.StreamTask", "restoreInternal", "$0.getEnvironment()"),)
"""A task restores its state before it runs."""
BUFFER = (
    RuleLocation(
        clazz="org.apache.flink.runtime.io.network.buffer.LocalBufferPool",
        method="requestBufferBuilder(int)",
        who="name:String = Thread.currentThread().getName();\nplace:String = name",
        is_subtask='name.contains("({ordinal}/")',
    ),
)
"""A task requests a network buffer to write records into. The pool does not know its task; the
thread's name does, such as `Calc[2] (3/4)#0`, where subtasks count from one."""
