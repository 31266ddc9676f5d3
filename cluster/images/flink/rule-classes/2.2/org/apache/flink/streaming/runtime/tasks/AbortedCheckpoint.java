package org.apache.flink.streaming.runtime.tasks;

import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.RejectedExecutionException;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.io.network.api.CancelCheckpointMarker;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.io.network.partition.consumer.IndexedInputGate;
import org.apache.flink.streaming.runtime.io.checkpointing.CheckpointBarrierHandler;

/**
 * Ends the alignment of an aborted checkpoint. Flink tells only the operators that a checkpoint was
 * aborted: the channels that were aligned stay blocked until the barrier of a newer checkpoint, which
 * no channel can deliver while a task is missing.
 */
public final class AbortedCheckpoint {
    private AbortedCheckpoint() {}

    /** The JobManager has aborted a checkpoint. */
    public static void onAborted(StreamTask<?, ?> task, long checkpoint) {
        boolean isApproximate =
                Arrays.stream(task.getEnvironment().getAllInputGates())
                        .anyMatch(AbortedCheckpoint::isApproximate);
        if (isApproximate) {
            task.getCheckpointBarrierHandler()
                    .ifPresent(handler -> later(task, handler, checkpoint));
        }
    }

    private static boolean isApproximate(IndexedInputGate gate) {
        return gate.getConsumedPartitionType() == ResultPartitionType.PIPELINED_APPROXIMATE;
    }

    private static void later(StreamTask<?, ?> task, CheckpointBarrierHandler handler, long id) {
        InputChannelInfo any = task.getEnvironment().getInputGate(0).getChannelInfos().get(0);
        try {
            task.mailboxProcessor
                    .getMainMailboxExecutor()
                    .execute(() -> abort(handler, id, any), "end alignment of checkpoint %d", id);
        } catch (RejectedExecutionException e) {
            // The task ends, and its alignment with it.
        }
    }

    /** In the thread of the task. Nothing happens if the checkpoint is not being aligned. */
    public static void abort(CheckpointBarrierHandler handler, long id, InputChannelInfo channel)
            throws IOException {
        if (id >= 0) {
            handler.processCancellationBarrier(new CancelCheckpointMarker(id), channel);
        }
    }
}
