package org.apache.flink.runtime.io.network.partition.consumer;

import org.apache.flink.runtime.event.TaskEvent;
import org.apache.flink.runtime.io.network.PartitionRequestClient;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultSubpartitionIndexSet;

/** The client of a channel that could not connect: Flink lets no task poll a channel without one. */
final class NoConnection implements PartitionRequestClient {
    @Override
    public void requestSubpartition(
            ResultPartitionID partition,
            ResultSubpartitionIndexSet subpartitions,
            RemoteInputChannel channel,
            int delayMs) {}

    @Override
    public void notifyCreditAvailable(RemoteInputChannel channel) {}

    @Override
    public void notifyNewBufferSize(RemoteInputChannel channel, int size) {}

    @Override
    public void notifyRequiredSegmentId(
            RemoteInputChannel channel, int subpartition, int segment) {}

    @Override
    public void resumeConsumption(RemoteInputChannel channel) {}

    @Override
    public void acknowledgeAllRecordsProcessed(RemoteInputChannel channel) {}

    @Override
    public void sendTaskEvent(
            ResultPartitionID partition, TaskEvent event, RemoteInputChannel channel) {}

    @Override
    public void close(RemoteInputChannel channel) {}
}
