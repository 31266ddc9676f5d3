package org.apache.flink.runtime.io.network.partition.consumer;

import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.runtime.io.network.netty.exception.TransportException;
import org.apache.flink.runtime.io.network.partition.PartitionException;
import org.apache.flink.runtime.shuffle.LostPartition;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the rules of a TaskManager call for the input gates of a job with single-task failover. */
public final class ReconnectingGate {
    private static final Logger LOG = LoggerFactory.getLogger(ReconnectingGate.class);
    private static final Map<SingleInputGate, Map<Integer, ReconnectingChannel>> GATES =
            new ConcurrentHashMap<>();

    private ReconnectingGate() {}

    /** Whether an error of a channel makes it unavailable; else it fails the task, as before. */
    public static boolean onError(InputChannel channel, Throwable cause) {
        return channel instanceof RemoteInputChannel remote
                && GateInternals.isApproximate(channel.inputGate)
                && (cause instanceof TransportException || cause instanceof PartitionException)
                && lose(remote, cause.toString());
    }

    /** Whether the missing partition of a channel makes it unavailable. */
    public static boolean onPartitionNotFound(RemoteInputChannel channel) {
        return GateInternals.isApproximate(channel.inputGate)
                && lose(channel, "its partition was not found");
    }

    private static boolean lose(RemoteInputChannel channel, String reason) {
        if (channel.inputGate.getCloseFuture().isDone()) {
            return false;
        }
        try {
            of(channel).lose(channel, reason);
            return true;
        } catch (Throwable t) {
            LOG.error("{} cannot wait for another producer.", channel, t);
            return false;
        }
    }

    /** Whether news of a producer was processed here. Flink itself only resolves unknown channels. */
    public static boolean onUpdate(SingleInputGate gate, NettyShuffleDescriptor news) {
        if (!GateInternals.isApproximate(gate)) {
            return false;
        }
        boolean isUnknown = false;
        for (InputChannel channel : GateInternals.channels(gate, news.getResultPartitionID())) {
            isUnknown |= channel instanceof UnknownInputChannel;
            apply(news, channel);
        }
        return !isUnknown || news instanceof LostPartition;
    }

    private static void apply(NettyShuffleDescriptor news, InputChannel channel) {
        try {
            if (channel instanceof UnknownInputChannel) {
                return;
            }
            if (news instanceof LostPartition) {
                of(channel).producerFailed(channel, news.getResultPartitionID());
            } else {
                of(channel)
                        .producerMoved(
                                channel, news.getResultPartitionID(), news.getConnectionId());
            }
        } catch (Throwable t) {
            // Flink ends the TaskManager if its update of a partition throws; one task is enough.
            channel.setError(new IllegalStateException("cannot apply " + news, t));
        }
    }

    /** Flink stops requesting partitions at the first that cannot be connected; request the others,
     * and use what was heard of producers before. */
    public static void onRequested(SingleInputGate gate) {
        if (!GateInternals.isApproximate(gate)) {
            return;
        }
        for (InputChannel channel : GateInternals.channels(gate).clone()) {
            if (channel instanceof RemoteInputChannel remote) {
                request(remote);
                of(remote).check(remote);
            }
        }
    }

    private static void request(RemoteInputChannel channel) {
        try {
            synchronized (GateInternals.requestLock(channel.inputGate)) {
                if (!GateInternals.hasClient(channel) && !channel.isReleased()) {
                    channel.requestSubpartitions();
                }
            }
        } catch (IOException e) {
            channel.setError(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** A released channel is polled when its last buffer arrived during its release. Then its
     * successor may have missed its place among the channels with data. */
    public static boolean onReleasedPolled(RemoteInputChannel channel) {
        SingleInputGate gate = channel.inputGate;
        if (!GateInternals.isApproximate(gate) || gate.getCloseFuture().isDone()) {
            return false;
        }
        InputChannel current = gate.getChannel(channel.getChannelIndex());
        if (current != channel) {
            gate.notifyChannelNonEmpty(current);
        }
        return true;
    }

    public static Optional<InputChannel.BufferAndAvailability> noBuffer() {
        return Optional.empty();
    }

    private static ReconnectingChannel of(InputChannel channel) {
        SingleInputGate gate = channel.inputGate;
        Map<Integer, ReconnectingChannel> known = GATES.get(gate);
        if (known == null) {
            known = GATES.computeIfAbsent(gate, key -> new ConcurrentHashMap<>());
            gate.getCloseFuture().thenRun(() -> GATES.remove(gate));
        }
        return known.computeIfAbsent(
                channel.getChannelIndex(), index -> new ReconnectingChannel(channel));
    }
}
