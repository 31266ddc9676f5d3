package streamquake;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;

/**
 * Spark's own way of writing checkpoint files, telling of the steps of a micro-batch as they are
 * taken: its offsets are in the log, its sink is written (the commit is begun), the commit is in
 * the log.
 */
public final class ToldCheckpoints extends FileContextBasedCheckpointFileManager {
    private static final Pattern STEP = Pattern.compile("/(offsets|commits)/(\\d+)$");

    public ToldCheckpoints(Path path, Configuration hadoop) {
        super(path, hadoop);
    }

    @Override
    public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
        tell("commits", "sink written", path);
        return super.createAtomic(path, overwriteIfPossible);
    }

    @Override
    public void renameTempFile(Path from, Path to, boolean overwriteIfPossible) {
        super.renameTempFile(from, to, overwriteIfPossible);
        tell("offsets", "offset written", to);
        tell("commits", "commit written", to);
    }

    private static void tell(String folder, String step, Path path) {
        Matcher found = STEP.matcher(path.toUri().getPath());
        if (found.find() && found.group(1).equals(folder)) {
            Told.tell(Told.entry(step).put("batch", Long.parseLong(found.group(2))));
        }
    }
}
