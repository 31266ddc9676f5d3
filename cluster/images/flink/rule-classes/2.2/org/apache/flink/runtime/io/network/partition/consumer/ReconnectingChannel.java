package org.apache.flink.runtime.io.network.partition.consumer;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.MINUTES;
import static org.apache.flink.runtime.execution.ExecutionState.DEPLOYING;
import static org.apache.flink.runtime.execution.ExecutionState.INITIALIZING;
import static org.apache.flink.runtime.execution.ExecutionState.RUNNING;

import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.io.network.ConnectionID;
import org.apache.flink.runtime.io.network.PartitionRequestClient;
import org.apache.flink.runtime.io.network.partition.PartitionProducerStateProvider.ResponseHandle;
import org.apache.flink.runtime.io.network.partition.ResultPartitionID;
import org.apache.flink.util.concurrent.ExecutorThreadFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What one input channel of a task does when its producer is lost: it lets the task read what was
 * received, then releases the channel, and connects a successor once the producer's new location is
 * known or the old producer is found to be running.
 *
 * <p>The monitor of an instance is never held while a lock of Flink is taken.
 */
final class ReconnectingChannel {
    private static final Logger LOG = LoggerFactory.getLogger(ReconnectingChannel.class);
    private static final long FIRST_QUESTION_MS = 500;
    private static final long LAST_QUESTION_MS = 8_000;
    private static final long GIVE_UP_MS = MINUTES.toMillis(5);
    private static final Set<ExecutionState> PRODUCING = Set.of(DEPLOYING, INITIALIZING, RUNNING);

    private static final Map<Long, ReconnectingChannel> BY_NUMBER = new ConcurrentHashMap<>();
    private static final AtomicLong NUMBERS = new AtomicLong();
    /** Connecting blocks for as long as a silent machine lets it. */
    private static final ExecutorService CONNECTING =
            Executors.newCachedThreadPool(new ExecutorThreadFactory("reconnecting-channel"));
    private static final ScheduledExecutorService TIMER =
            Executors.newSingleThreadScheduledExecutor(
                    new ExecutorThreadFactory("reconnecting-channel-timer"));

    private final long number = NUMBERS.incrementAndGet();
    private final SingleInputGate gate;

    /** The newest known place of the producer. */
    private ResultPartitionID partition;
    private ConnectionID connection;
    /** The newest attempt of the producer that is known to have failed. */
    private int failedAttempt = -1;
    /** The channel whose producer is lost; null while connected. */
    private RemoteInputChannel lost;
    private boolean released;
    private long lostAt;
    /** What a thread is connecting to. */
    private ResultPartitionID connecting;

    ReconnectingChannel(InputChannel channel) {
        this.gate = channel.inputGate;
        this.partition = channel.getPartitionId();
        BY_NUMBER.put(number, this);
        gate.getCloseFuture().thenRun(() -> BY_NUMBER.remove(number));
    }

    static ReconnectingChannel of(long number) {
        ReconnectingChannel found = BY_NUMBER.get(number);
        if (found == null) {
            throw new IllegalStateException("no channel has the number " + number);
        }
        return found;
    }

    /** The producer has failed. */
    void producerFailed(InputChannel current, ResultPartitionID failed) {
        synchronized (this) {
            failedAttempt = Math.max(failedAttempt, attempt(failed));
        }
        check(current);
    }

    /** The producer has a new location. */
    void producerMoved(InputChannel current, ResultPartitionID moved, ConnectionID to) {
        synchronized (this) {
            if (attempt(moved) <= Math.max(attempt(partition), attempt(current.getPartitionId()))) {
                return;
            }
            partition = moved;
            connection = to;
        }
        check(current);
        connect();
    }

    /** Whether a channel that may be connected reads from a producer that was replaced or failed. */
    void check(InputChannel current) {
        int known;
        synchronized (this) {
            known = Math.max(failedAttempt, attempt(partition) - 1);
        }
        if (current instanceof RemoteInputChannel remote
                && attempt(current.getPartitionId()) <= known) {
            lose(remote, "its producer has failed");
        }
    }

    /** The channel's producer is lost. */
    void lose(RemoteInputChannel channel, String reason) {
        synchronized (this) {
            if (channel.isReleased() || channel == lost) {
                return;
            }
            lost = channel;
            released = false;
            lostAt = System.currentTimeMillis();
            if (attempt(partition) <= attempt(channel.getPartitionId())) {
                partition = channel.getPartitionId();
                connection = GateInternals.connection(channel);
            }
        }
        LOG.warn("{}: {} is unavailable: {}.", gate.getOwningTaskName(), channel, reason);
        if (!GateInternals.hasClient(channel)) {
            GateInternals.setClient(channel, new NoConnection());
        }
        append(channel, true);
        askLater(channel, FIRST_QUESTION_MS);
    }

    /** The task has read what the lost channel received; called in its thread. */
    void release() throws IOException {
        RemoteInputChannel old;
        synchronized (this) {
            old = lost;
        }
        if (old == null) {
            return;
        }
        old.releaseAllResources();
        GateInternals.dequeue(gate, old);
        boolean isSuccessorKnown;
        synchronized (this) {
            released = true;
            isSuccessorKnown = attempt(partition) > attempt(old.getPartitionId());
        }
        if (isSuccessorKnown) {
            connect();
        }
    }

    private void askLater(RemoteInputChannel waiting, long afterMs) {
        TIMER.schedule(() -> ask(waiting, afterMs), afterMs, MILLISECONDS);
    }

    /** Nothing announces that a producer still runs whose connection broke; the JobManager knows. */
    private void ask(RemoteInputChannel waiting, long waitedMs) {
        ResultPartitionID asked;
        boolean isTooLong;
        synchronized (this) {
            if (lost != waiting || gate.getCloseFuture().isDone()) {
                return;
            }
            asked = partition;
            isTooLong = System.currentTimeMillis() - lostAt > GIVE_UP_MS;
        }
        if (isTooLong) {
            LOG.error("{}: no new producer of {} was found.", gate.getOwningTaskName(), asked);
            waiting.setError(new IOException("no new producer of " + asked + " was found"));
            return;
        }
        GateInternals.producerStates(gate)
                .requestPartitionProducerState(
                        GateInternals.consumedResult(gate), asked, this::onProducerState);
        askLater(waiting, Math.min(2 * waitedMs, LAST_QUESTION_MS));
    }

    private void onProducerState(ResponseHandle answer) {
        var state = answer.getProducerExecutionState();
        if (state.isLeft() && PRODUCING.contains(state.left())) {
            connect();
        }
    }

    private void connect() {
        CONNECTING.execute(this::connectSuccessor);
    }

    private void connectSuccessor() {
        RemoteInputChannel successor;
        RemoteInputChannel old;
        synchronized (this) {
            boolean isWaiting = lost != null && released && attempt(partition) > failedAttempt;
            if (!isWaiting || partition.equals(connecting)) {
                return;
            }
            old = lost;
            connecting = partition;
            successor = GateInternals.successor(old, partition, connection);
        }
        try {
            replace(old, successor);
        } catch (IOException e) {
            String reason = e.toString();
            LOG.info("{}: {} is not reachable: {}", gate.getOwningTaskName(), successor, reason);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (Throwable t) {
            LOG.error("{}: {} cannot be connected.", gate.getOwningTaskName(), successor, t);
        } finally {
            endOfAttempt(successor);
        }
    }

    private synchronized void endOfAttempt(RemoteInputChannel successor) {
        if (successor.getPartitionId().equals(connecting)) {
            connecting = null;
        }
    }

    private void replace(RemoteInputChannel old, RemoteInputChannel successor)
            throws IOException, InterruptedException {
        PartitionRequestClient client =
                GateInternals.connectionManager(old)
                        .createPartitionRequestClient(GateInternals.connection(successor));
        GateInternals.setClient(successor, client);
        if (!install(old, successor)) {
            successor.releaseAllResources();
            return;
        }
        LOG.info("{}: {} takes the place of {}.", gate.getOwningTaskName(), successor, old);
        append(successor, false);
        try {
            client.requestSubpartition(
                    successor.getPartitionId(),
                    successor.getConsumedSubpartitionIndexSet(),
                    successor,
                    0);
        } catch (IOException e) {
            lose(successor, e.toString());
        }
    }

    private boolean install(RemoteInputChannel old, RemoteInputChannel successor)
            throws IOException {
        synchronized (GateInternals.requestLock(gate)) {
            if (gate.getCloseFuture().isDone()) {
                return false;
            }
            successor.setup();
            boolean isWanted = begin(old, successor);
            if (isWanted) {
                GateInternals.install(gate, successor);
            }
            return isWanted;
        }
    }

    private synchronized boolean begin(RemoteInputChannel old, RemoteInputChannel successor) {
        if (lost != old || attempt(successor.getPartitionId()) < attempt(partition)) {
            return false;
        }
        lost = null;
        return true;
    }

    private void append(RemoteInputChannel channel, boolean isLost) {
        try {
            GateInternals.append(channel, new ChannelEvent(number, isLost));
        } catch (IOException e) {
            channel.setError(new IllegalStateException("cannot write an event", e));
        }
    }

    private static int attempt(ResultPartitionID partition) {
        return partition.getProducerId().getAttemptNumber();
    }
}
