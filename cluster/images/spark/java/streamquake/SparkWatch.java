package streamquake;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkConf;
import org.apache.spark.Success$;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationStart;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryIdleEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryProgressEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryStartedEvent;
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent;
import scala.jdk.javaapi.CollectionConverters;

/** Listens to a driver and tells of its queries, batches, stages, task attempts and executors. */
public final class SparkWatch extends SparkListener {
    private static final String BATCH = "streaming.sql.batchId";
    private final Map<Integer, Long> batches = new HashMap<>();
    private final Map<String, String> hosts = new TreeMap<>();

    public SparkWatch(SparkConf conf) throws IOException {
        Told.open(conf.getInt("spark.streamquake.port", 4050));
    }

    @Override
    public void onApplicationStart(SparkListenerApplicationStart started) {
        Told.tell(Told.entry("application", started.time()).put("id", started.appId().getOrElse(() -> "")));
    }

    @Override
    public void onExecutorAdded(SparkListenerExecutorAdded added) {
        String host = added.executorInfo().executorHost();
        hosts.put(added.executorId(), host);
        executors("executor added", added.time(), added.executorId(), host, "");
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
        String host = hosts.remove(removed.executorId());
        executors("executor removed", removed.time(), removed.executorId(), host, removed.reason());
    }

    private void executors(String what, long atMs, String executor, String host, String reason) {
        ObjectNode entry = Told.entry(what, atMs).put("executor", executor).put("host", host);
        entry.put("reason", reason);
        ObjectNode there = entry.putObject("there");
        hosts.forEach(there::put);
        Told.tell(entry);
    }

    @Override
    public void onJobStart(SparkListenerJobStart started) {
        String batch = started.properties() == null ? null : started.properties().getProperty(BATCH);
        if (batch == null) {
            return;
        }
        for (StageInfo stage : CollectionConverters.asJava(started.stageInfos())) {
            batches.put(stage.stageId(), Long.parseLong(batch));
        }
        Told.tell(
                Told.entry("job", started.time())
                        .put("job", started.jobId())
                        .put("batch", Long.parseLong(batch)));
    }

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
        tell("stage submitted", submitted.stageInfo());
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted completed) {
        tell("stage completed", completed.stageInfo());
    }

    @Override
    public void onTaskStart(SparkListenerTaskStart started) {
        Told.tell(about("task started", started.stageId(), started.stageAttemptId(), started.taskInfo()));
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd ended) {
        if (ended.taskInfo() == null) {
            return;
        }
        ObjectNode entry = about("task ended", ended.stageId(), ended.stageAttemptId(), ended.taskInfo());
        entry.put("state", ended.taskInfo().status());
        entry.put("end_ms", ended.taskInfo().finishTime());
        if (ended.reason() != Success$.MODULE$) {
            entry.put("kind", ended.reason().getClass().getSimpleName().replace("$", ""));
            boolean told = ended.reason() instanceof TaskFailedReason;
            entry.put("reason", told ? ((TaskFailedReason) ended.reason()).toErrorString() : "");
        }
        Told.tell(entry);
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof QueryStartedEvent started) {
            ObjectNode entry = Told.entry("query started").put("id", started.id().toString());
            Told.tell(entry.put("run", started.runId().toString()).put("name", started.name()));
        } else if (event instanceof QueryProgressEvent made) {
            ObjectNode entry = Told.entry("progress");
            Told.put(entry, "progress", made.progress().json());
            Told.tell(entry);
        } else if (event instanceof QueryIdleEvent idle) {
            Told.tell(Told.entry("idle").put("run", idle.runId().toString()));
        } else if (event instanceof QueryTerminatedEvent ended) {
            ObjectNode entry = Told.entry("query ended").put("run", ended.runId().toString());
            Told.tell(entry.put("reason", ended.exception().getOrElse(() -> "")));
        }
    }

    private ObjectNode about(String what, int stage, int stageAttempt, TaskInfo task) {
        return batched(Told.entry(what), stage)
                .put("stage", stage)
                .put("stage_attempt", stageAttempt)
                .put("task", task.index())
                .put("attempt", task.attemptNumber())
                .put("partition", task.partitionId())
                .put("executor", task.executorId())
                .put("host", task.host())
                .put("start_ms", task.launchTime())
                .put("speculative", task.speculative());
    }

    private void tell(String what, StageInfo stage) {
        Told.tell(
                batched(Told.entry(what), stage.stageId())
                        .put("stage", stage.stageId())
                        .put("stage_attempt", stage.attemptNumber())
                        .put("tasks", stage.numTasks())
                        .put("reason", stage.failureReason().getOrElse(() -> "")));
    }

    private ObjectNode batched(ObjectNode entry, int stage) {
        Long batch = batches.get(stage);
        return batch == null ? entry : entry.put("batch", batch);
    }
}
