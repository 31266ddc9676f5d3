package org.apache.flink.runtime.executiongraph;

import static org.apache.flink.runtime.execution.ExecutionState.CREATED;
import static org.apache.flink.runtime.execution.ExecutionState.FINISHED;
import static org.apache.flink.runtime.io.network.partition.ResultPartitionType.PIPELINED_APPROXIMATE;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.flink.runtime.checkpoint.CheckpointCoordinator;
import org.apache.flink.runtime.checkpoint.CheckpointIDCounter;
import org.apache.flink.runtime.deployment.ResultPartitionDeploymentDescriptor;
import org.apache.flink.runtime.executiongraph.failover.FailureHandlingResult;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.apache.flink.runtime.scheduler.strategy.SchedulingExecutionVertex;
import org.apache.flink.runtime.scheduler.strategy.SchedulingResultPartition;
import org.apache.flink.runtime.scheduler.strategy.SchedulingTopology;
import org.apache.flink.runtime.shuffle.LostPartition;
import org.apache.flink.runtime.shuffle.NettyShuffleDescriptor;
import org.apache.flink.runtime.shuffle.PartitionDescriptor;
import org.apache.flink.runtime.shuffle.RestartedPartition;
import org.apache.flink.runtime.util.Hidden;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the rules of a JobManager call: which task is restarted, and who is told about it. */
public final class SingleTaskFailover {
    private static final Logger LOG = LoggerFactory.getLogger(SingleTaskFailover.class);
    private static final int RESTARTS = Integer.getInteger("single-task.restarts-per-minute", 3);
    private static final Duration PER = Duration.ofMinutes(1);

    private static final Method UPDATE_CONSUMERS =
            Hidden.method(
                    Execution.class, "updatePartitionConsumers", IntermediateResultPartition.class);
    private static final Method SEND =
            Hidden.method(Execution.class, "sendUpdatePartitionInfoRpcCall", Iterable.class);
    private static final Field CHECKPOINT_IDS =
            Hidden.field(CheckpointCoordinator.class, "checkpointIdCounter");

    private static final Field PARTITION =
            Hidden.field(ResultPartitionDeploymentDescriptor.class, "partitionDescriptor");

    private static final Map<SchedulingTopology, Map<ExecutionVertexID, Deque<Long>>> FAILURES =
            Collections.synchronizedMap(new WeakHashMap<>());
    /** The newest attempt of a task that restarted alone. */
    private static final Map<ExecutionVertex, Integer> ALONE =
            Collections.synchronizedMap(new WeakHashMap<>());

    private SingleTaskFailover() {}

    /**
     * The vertices to restart after a failure: the failed one alone, or all if that is not possible.
     * Null for a job without approximate exchanges, where Flink chooses.
     */
    public static Set<ExecutionVertexID> toRestart(
            SchedulingTopology topology, ExecutionVertexID failed) {
        SchedulingExecutionVertex vertex = topology.getVertex(failed);
        if (partitions(vertex).noneMatch(SingleTaskFailover::isApproximate)) {
            return null;
        }
        String obstacle = obstacle(topology, vertex);
        if (obstacle == null) {
            LOG.info("Single-task failover of {}: no other task restarts.", failed);
            return started(Stream.of(vertex));
        }
        LOG.warn("No single-task failover of {}: all tasks restart, because {}.", failed, obstacle);
        return started(vertices(topology));
    }

    private static Set<ExecutionVertexID> started(
            Stream<? extends SchedulingExecutionVertex> vertices) {
        return vertices.filter(vertex -> vertex.getState() != CREATED)
                .map(SchedulingExecutionVertex::getId)
                .collect(Collectors.toSet());
    }

    private static String obstacle(SchedulingTopology topology, SchedulingExecutionVertex vertex) {
        if (!partitions(vertex).allMatch(SingleTaskFailover::isApproximate)) {
            return "it has exchanges of another type";
        }
        if (vertices(topology).anyMatch(other -> other.getState() == FINISHED)) {
            return "a task has finished";
        }
        if (isTooFrequent(topology, vertex.getId())) {
            return "it failed more than " + RESTARTS + " times within " + PER;
        }
        return null;
    }

    private static boolean isTooFrequent(SchedulingTopology topology, ExecutionVertexID failed) {
        long now = System.nanoTime();
        Deque<Long> failures =
                FAILURES.computeIfAbsent(topology, key -> new HashMap<>())
                        .computeIfAbsent(failed, key -> new ArrayDeque<>());
        failures.removeIf(time -> now - time > PER.toNanos());
        failures.add(now);
        return failures.size() > RESTARTS;
    }

    private static Stream<? extends SchedulingExecutionVertex> vertices(
            SchedulingTopology topology) {
        return StreamSupport.stream(topology.getVertices().spliterator(), false);
    }

    private static Stream<SchedulingResultPartition> partitions(SchedulingExecutionVertex vertex) {
        return Stream.of(vertex.getConsumedResults(), vertex.getProducedResults())
                .flatMap(results -> StreamSupport.stream(results.spliterator(), false));
    }

    private static boolean isApproximate(SchedulingResultPartition partition) {
        return partition.getResultType() == PIPELINED_APPROXIMATE;
    }

    /** Tasks are about to restart. */
    public static void onRestart(FailureHandlingResult failure) {
        if (failure.canRestart() && !failure.isGlobalFailure()) {
            failure.getFailedExecution()
                    .filter(failed -> isAlone(failed, failure.getVerticesToRestart()))
                    .ifPresent(failed -> ALONE.put(failed.getVertex(), failed.getAttemptNumber() + 1));
        }
    }

    private static boolean isAlone(Execution failed, Set<ExecutionVertexID> restarting) {
        return restarting.equals(Set.of(failed.getVertex().getID()));
    }

    /** The partitions of a task to deploy, which tell a task that restarts alone that it does. */
    public static Collection<ResultPartitionDeploymentDescriptor> toDeploy(
            Execution execution, Collection<ResultPartitionDeploymentDescriptor> partitions) {
        boolean isAlone =
                Objects.equals(
                        ALONE.get(execution.getVertex()), execution.getAttemptNumber());
        return isAlone
                ? partitions.stream().map(SingleTaskFailover::restarted).toList()
                : partitions;
    }

    private static ResultPartitionDeploymentDescriptor restarted(
            ResultPartitionDeploymentDescriptor partition) {
        if (partition.getPartitionType() == PIPELINED_APPROXIMATE
                && partition.getShuffleDescriptor() instanceof NettyShuffleDescriptor known) {
            return new ResultPartitionDeploymentDescriptor(
                    Hidden.<PartitionDescriptor>get(PARTITION, partition),
                    new RestartedPartition(known),
                    partition.getMaxParallelism());
        }
        return partition;
    }

    /**
     * Tell the consumers of a failed task: a task that fails in a TaskManager that goes on closes no
     * connection.
     */
    public static void announceFailure(Execution failed) {
        guarded(failed, () -> produced(failed).forEach(each -> announceFailure(failed, each)));
    }

    private static void announceFailure(Execution failed, IntermediateResultPartition partition) {
        failed.getResultPartitionDeploymentDescriptor(partition.getPartitionId())
                .map(ResultPartitionDeploymentDescriptor::getShuffleDescriptor)
                .filter(NettyShuffleDescriptor.class::isInstance)
                .map(known -> new LostPartition((NettyShuffleDescriptor) known))
                .ifPresent(news -> tellConsumers(partition, news));
    }

    private static void tellConsumers(IntermediateResultPartition partition, LostPartition news) {
        PartitionInfo info = new PartitionInfo(partition.getIntermediateResult().getId(), news);
        InternalExecutionGraphAccessor graph = partition.getProducer().getExecutionGraphAccessor();
        for (var group : partition.getConsumerVertexGroups()) {
            for (ExecutionVertexID consumer : group) {
                for (Execution execution :
                        graph.getExecutionVertexOrThrow(consumer).getCurrentExecutions()) {
                    tell(execution, info);
                }
            }
        }
    }

    private static void tell(Execution consumer, PartitionInfo news) {
        switch (consumer.getState()) {
            case DEPLOYING -> consumer.cachePartitionInfo(news);
            case INITIALIZING, RUNNING -> Hidden.call(SEND, consumer, Set.of(news));
            default -> {}
        }
    }

    /** A new attempt has set up its partitions: tell the consumers where they are. */
    public static void announceLocation(Execution started) {
        if (started.getAttemptNumber() > 0) {
            guarded(started, () -> produced(started).forEach(each -> announce(started, each)));
        }
    }

    private static void announce(Execution started, IntermediateResultPartition partition) {
        IntermediateResult result = partition.getIntermediateResult();
        partition
                .getConsumedPartitionGroups()
                .forEach(result::clearCachedInformationForPartitionGroup);
        Hidden.call(UPDATE_CONSUMERS, started, partition);
    }

    /** Barriers of checkpoints aborted while a new attempt was away must not be aligned. */
    public static void announceAborted(Execution started) {
        if (started.getAttemptNumber() > 0) {
            guarded(started, () -> abortCheckpoints(started));
        }
    }

    private static void abortCheckpoints(Execution started) {
        ExecutionGraph graph = (ExecutionGraph) started.getVertex().getExecutionGraphAccessor();
        CheckpointCoordinator coordinator = graph.getCheckpointCoordinator();
        if (coordinator != null && consumesApproximate(started)) {
            CheckpointIDCounter ids = Hidden.get(CHECKPOINT_IDS, coordinator);
            long latest = coordinator.getCheckpointStore().getLatestCheckpointId();
            started.notifyCheckpointAborted(ids.get() - 1, latest, System.currentTimeMillis());
        }
    }

    /** A task that missed news would wait for minutes, so an error here restarts the job. */
    private static void guarded(Execution execution, Runnable action) {
        try {
            action.run();
        } catch (Throwable t) {
            execution.getVertex().getExecutionGraphAccessor().failGlobal(t);
        }
    }

    private static boolean consumesApproximate(Execution execution) {
        InternalExecutionGraphAccessor graph = execution.getVertex().getExecutionGraphAccessor();
        return execution.getVertex().getAllConsumedPartitionGroups().stream()
                .map(group -> graph.getResultPartitionOrThrow(group.getFirst()))
                .anyMatch(partition -> partition.getResultType() == PIPELINED_APPROXIMATE);
    }

    private static List<IntermediateResultPartition> produced(Execution execution) {
        return execution.getVertex().getProducedPartitions().values().stream()
                .filter(partition -> partition.getResultType() == PIPELINED_APPROXIMATE)
                .toList();
    }
}
