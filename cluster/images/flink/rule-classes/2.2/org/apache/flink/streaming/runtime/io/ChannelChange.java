package org.apache.flink.streaming.runtime.io;

import java.lang.reflect.Method;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.io.network.partition.consumer.BufferOrEvent;
import org.apache.flink.runtime.io.network.partition.consumer.ChannelEvent;
import org.apache.flink.runtime.util.Hidden;
import org.apache.flink.streaming.runtime.io.PushingAsyncDataInput.DataOutput;
import org.apache.flink.streaming.runtime.io.checkpointing.CheckpointBarrierHandler;
import org.apache.flink.streaming.runtime.io.checkpointing.CheckpointedInputGate;
import org.apache.flink.streaming.runtime.tasks.AbortedCheckpoint;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;

/** Applies the loss and the return of a channel in the task that reads it. */
public final class ChannelChange {
    private static final Method HANDLER =
            Hidden.method(CheckpointedInputGate.class, "getCheckpointBarrierHandler");

    private ChannelChange() {}

    public static void apply(
            AbstractStreamTaskNetworkInput<?, ?> input,
            BufferOrEvent received,
            DataOutput<?> output)
            throws Exception {
        if (received.getEvent() instanceof ChannelEvent event) {
            InputChannelInfo channel = received.getChannelInfo();
            if (event.isLost()) {
                purge(input, channel);
                event.release();
            }
            // A lost channel holds back no watermark of the others.
            input.statusWatermarkValve.inputWatermarkStatus(
                    event.isLost() ? WatermarkStatus.IDLE : WatermarkStatus.ACTIVE,
                    input.flattenedChannelIndices.get(channel),
                    output);
        }
    }

    private static void purge(AbstractStreamTaskNetworkInput<?, ?> input, InputChannelInfo channel)
            throws Exception {
        var halfRecord = input.recordDeserializers.get(channel);
        if (halfRecord != null) {
            halfRecord.clear();
        }
        // Other channels must not wait for its barrier; and after its release it cannot be resumed.
        var handler = (CheckpointBarrierHandler) Hidden.call(HANDLER, input.checkpointedInputGate);
        AbortedCheckpoint.abort(handler, handler.getLatestCheckpointId(), channel);
    }
}
