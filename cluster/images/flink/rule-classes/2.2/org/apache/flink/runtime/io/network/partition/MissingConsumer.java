package org.apache.flink.runtime.io.network.partition;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import org.apache.flink.runtime.deployment.ResultPartitionDeploymentDescriptor;
import org.apache.flink.runtime.shuffle.RestartedPartition;
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Waits for the first consumer of a subpartition whose producer restarted alone. If data waits for a
 * consumer that does not come, since it failed as well, the data is dropped, as behind a consumer
 * that was connected before. After a restart of the whole job a producer waits for its consumers.
 */
public final class MissingConsumer {
    private static final Logger LOG = LoggerFactory.getLogger(MissingConsumer.class);
    /** Running consumers connect as soon as the partition exists, before it has data. */
    private static final long PATIENCE_MS = 400;
    private static final ScheduledExecutorService TIMER =
            Executors.newSingleThreadScheduledExecutor(
                    new ExecutorThreadFactory("missing-consumer-timer"));

    private final PipelinedApproximateSubpartition subpartition;

    private MissingConsumer(PipelinedApproximateSubpartition subpartition) {
        this.subpartition = subpartition;
    }

    /** A producer has created a partition. */
    public static void onCreated(
            ResultPartition created, ResultPartitionDeploymentDescriptor deployed) {
        if (deployed.getShuffleDescriptor() instanceof RestartedPartition
                && created instanceof BufferWritingResultPartition partition) {
            for (ResultSubpartition each : partition.subpartitions) {
                if (each instanceof PipelinedApproximateSubpartition approximate) {
                    new MissingConsumer(approximate).checkLater(false);
                }
            }
        }
    }

    private void checkLater(boolean hasDataWaited) {
        TIMER.schedule(() -> check(hasDataWaited), PATIENCE_MS, MILLISECONDS);
    }

    private void check(boolean hasDataWaited) {
        boolean isDataWaiting;
        synchronized (subpartition.buffers) {
            if (subpartition.isReleased || subpartition.readView != null) {
                return;
            }
            isDataWaiting = !subpartition.buffers.isEmpty();
        }
        if (hasDataWaited && isDataWaiting) {
            drop();
        } else {
            checkLater(isDataWaiting);
        }
    }

    private void drop() {
        try {
            DiscardingReader.connect(subpartition, null);
        } catch (Throwable t) {
            LOG.error("{} waits for its consumer.", subpartition, t);
        }
    }
}
