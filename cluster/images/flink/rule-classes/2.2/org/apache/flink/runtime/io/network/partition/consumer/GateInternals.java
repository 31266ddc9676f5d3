package org.apache.flink.runtime.io.network.partition.consumer;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.checkpoint.channel.ChannelStateWriter;
import org.apache.flink.runtime.checkpoint.channel.InputChannelInfo;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.ConnectionManager;
import org.apache.flink.runtime.io.network.PartitionRequestClient;
import org.apache.flink.runtime.io.network.api.serialization.EventSerializer;
import org.apache.flink.runtime.io.network.buffer.Buffer;
import org.apache.flink.runtime.io.network.partition.PartitionProducerStateProvider;
import org.apache.flink.runtime.io.network.partition.PrioritizedDeque;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.runtime.io.network.partition.ResultPartitionType;
import org.apache.flink.runtime.jobgraph.IntermediateDataSetID;
import org.apache.flink.runtime.jobgraph.IntermediateResultPartitionID;
import org.apache.flink.runtime.util.Hidden;

/** The private parts of input gates and remote channels that reconnecting needs. */
final class GateInternals {
    private static final Field REQUEST_LOCK = gate("requestLock");
    private static final Field CHANNELS = gate("channels");
    private static final Field BY_PARTITION = gate("inputChannels");
    private static final Field ENQUEUED = gate("enqueuedInputChannelsWithData");
    private static final Field RESULT = gate("consumedResultId");
    private static final Field STATES = gate("partitionProducerStateProvider");
    private static final Field RECEIVED = channel("receivedBuffers");
    private static final Field QUEUED_BYTES = channel("totalQueueSizeInBytes");
    private static final Field CLIENT = channel("partitionRequestClient");
    private static final Field MANAGER = channel("connectionManager");
    private static final Field CONNECTION = channel("connectionId");
    private static final Field LISTENER_TIMEOUT = channel("partitionRequestListenerTimeout");
    private static final Constructor<?> ENTRY = entry();

    private GateInternals() {}

    private static Field gate(String name) {
        return Hidden.field(SingleInputGate.class, name);
    }

    private static Field channel(String name) {
        return Hidden.field(RemoteInputChannel.class, name);
    }

    private static Constructor<?> entry() {
        for (Class<?> inner : RemoteInputChannel.class.getDeclaredClasses()) {
            if (inner.getSimpleName().equals("SequenceBuffer")) {
                Constructor<?> constructor = inner.getDeclaredConstructors()[0];
                constructor.setAccessible(true);
                return constructor;
            }
        }
        throw new IllegalStateException("RemoteInputChannel has no class SequenceBuffer");
    }

    static boolean isApproximate(SingleInputGate gate) {
        return gate.getConsumedPartitionType() == ResultPartitionType.PIPELINED_APPROXIMATE;
    }

    /** Guards requests and the replacement of channels. */
    static Object requestLock(SingleInputGate gate) {
        return Hidden.get(REQUEST_LOCK, gate);
    }

    static InputChannel[] channels(SingleInputGate gate) {
        return Hidden.get(CHANNELS, gate);
    }

    /** The channels of one partition; empty for a partition that the gate does not consume. */
    static List<InputChannel> channels(SingleInputGate gate, ResultPartitionID partition) {
        synchronized (requestLock(gate)) {
            return List.copyOf(
                    byPartition(gate)
                            .getOrDefault(partition.getPartitionId(), Map.of())
                            .values());
        }
    }

    private static Map<IntermediateResultPartitionID, Map<InputChannelInfo, InputChannel>>
            byPartition(SingleInputGate gate) {
        return Hidden.get(BY_PARTITION, gate);
    }

    static PartitionProducerStateProvider producerStates(SingleInputGate gate) {
        return Hidden.get(STATES, gate);
    }

    static IntermediateDataSetID consumedResult(SingleInputGate gate) {
        return Hidden.get(RESULT, gate);
    }

    static ConnectionManager connectionManager(RemoteInputChannel channel) {
        return Hidden.get(MANAGER, channel);
    }

    static ConnectionID connection(RemoteInputChannel channel) {
        return Hidden.get(CONNECTION, channel);
    }

    static boolean hasClient(RemoteInputChannel channel) {
        return Hidden.get(CLIENT, channel) != null;
    }

    static void setClient(RemoteInputChannel channel, PartitionRequestClient client) {
        Hidden.set(CLIENT, channel, client);
    }

    /** Put a channel in the place of its predecessor. The caller holds the request lock. */
    static void install(SingleInputGate gate, RemoteInputChannel channel) {
        channels(gate)[channel.getChannelIndex()] = channel;
        byPartition(gate)
                .get(channel.getPartitionId().getPartitionId())
                .put(channel.getChannelInfo(), channel);
    }

    static RemoteInputChannel successor(
            RemoteInputChannel old, ResultPartitionID partition, ConnectionID connection) {
        return new RemoteInputChannel(
                old.inputGate,
                old.getChannelIndex(),
                partition,
                old.getConsumedSubpartitionIndexSet(),
                connection,
                connectionManager(old),
                old.initialBackoff,
                old.maxBackoff,
                Hidden.<Integer>get(LISTENER_TIMEOUT, old),
                old.getInitialCredit(),
                old.numBytesIn,
                old.numBuffersIn,
                ChannelStateWriter.NO_OP);
    }

    /** Append an event to what a channel has received. It has no sequence number of the connection,
     * whose counter belongs to the network thread. */
    static void append(RemoteInputChannel channel, ChannelEvent event) throws IOException {
        Buffer buffer = EventSerializer.toBuffer(event, false);
        PrioritizedDeque<Object> received = Hidden.get(RECEIVED, channel);
        int subpartition = channel.getConsumedSubpartitionIndexSet().values().iterator().next();
        synchronized (received) {
            if (channel.isReleased()) {
                buffer.recycleBuffer();
                return;
            }
            received.add(newEntry(buffer, subpartition));
            long queued = Hidden.<Long>get(QUEUED_BYTES, channel) + buffer.getSize();
            Hidden.set(QUEUED_BYTES, channel, queued);
        }
        channel.notifyChannelNonEmpty();
    }

    private static Object newEntry(Buffer buffer, int subpartition) {
        try {
            return ENTRY.newInstance(buffer, 0, subpartition);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** No longer poll a channel, as after the end of a partition. */
    static void dequeue(SingleInputGate gate, RemoteInputChannel channel) {
        PrioritizedDeque<InputChannel> withData = gate.getInputChannelsWithData();
        synchronized (withData) {
            if (withData.contains(channel)) {
                withData.getAndRemove(other -> other == channel);
            }
            Hidden.<BitSet>get(ENQUEUED, gate).clear(channel.getChannelIndex());
        }
    }
}
