package org.apache.flink.runtime.io.network.partition;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.Map;
import java.util.OptionalLong;
import java.util.WeakHashMap;
import org.apache.flink.runtime.checkpoint.CheckpointException;
import org.apache.flink.runtime.checkpoint.CheckpointFailureReason;
import org.apache.flink.runtime.execution.Environment;
import org.apache.flink.runtime.io.network.api.CheckpointBarrier;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.apache.flink.runtime.io.network.api.writer.ResultPartitionWriter;
import org.apache.flink.runtime.io.network.buffer.Buffer;

/**
 * Declines a checkpoint whose barrier was dropped. A new consumer would wait for that barrier, and
 * block its other channels, until the checkpoint's time-out: the JobManager triggers checkpoints as
 * soon as the consumer runs, which may be before the request of its partitions has arrived.
 */
public final class DroppedBarrier {
    private static final Map<ResultPartitionWriter, WeakReference<Environment>> PRODUCERS =
            Collections.synchronizedMap(new WeakHashMap<>());

    private DroppedBarrier() {}

    /** A task is about to send barriers. */
    public static void onCheckpoint(Environment task) {
        for (ResultPartitionWriter writer : task.getAllWriters()) {
            PRODUCERS.computeIfAbsent(writer, key -> new WeakReference<>(task));
        }
    }

    /** An event was dropped; the checkpoint whose barrier it is, if it is one. */
    static OptionalLong onDropped(ResultPartition partition, Buffer event) {
        if (!(parsed(event) instanceof CheckpointBarrier barrier)) {
            return OptionalLong.empty();
        }
        WeakReference<Environment> producer = PRODUCERS.get(partition);
        Environment task = producer == null ? null : producer.get();
        if (task != null) {
            task.declineCheckpoint(
                    barrier.getId(),
                    new CheckpointException(
                            "a consumer was not connected",
                            CheckpointFailureReason.CHECKPOINT_DECLINED_TASK_NOT_READY));
        }
        return OptionalLong.of(barrier.getId());
    }

    private static Object parsed(Buffer event) {
        try {
            return EventSerializer.fromBuffer(event, DroppedBarrier.class.getClassLoader());
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
