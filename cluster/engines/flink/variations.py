"""What an exploration varies in jobs on Flink: options, and the phases to inject faults in."""

from __future__ import annotations

from collections.abc import Mapping

from streamquake.cluster.engines.engine import JobVariations, OptionValues
from streamquake.cluster.engines.flink.config import INTERVAL

OPTIONS: Mapping[str, OptionValues] = {
    INTERVAL: ("500ms", "1s", "2s", "5s"),
    "execution.checkpointing.unaligned.enabled": (True, False),
    "execution.checkpointing.aligned-checkpoint-timeout": ("0ms", "200ms", "1s"),
    "execution.checkpointing.max-concurrent-checkpoints": (1, 2),
    "execution.checkpointing.min-pause": ("0ms", "500ms"),
    "execution.checkpointing.tolerable-failed-checkpoints": (0, 3, 100),
    "state.backend.type": ("hashmap", "rocksdb"),
    "execution.checkpointing.incremental": (True, False),
}
VARIATIONS = JobVariations(
    options=OPTIONS,
    windows=(
        ("checkpoint triggered", "checkpoint acknowledged"),
        ("checkpoint acknowledged", "checkpoint all acknowledged"),
        ("checkpoint all acknowledged", "checkpoint completed"),
        ("checkpoint completed", "sink committed"),
    ),
    reactions=("job failing", "job restarting", "job restored", "checkpoint failed"),
)
