package streamquake;

import java.io.FileReader;
import java.io.IOException;
import java.io.Reader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import kafka.tools.StorageTool;

/**
 * A Kafka node that formats its storage if needed and serves from the same JVM: a JVM of its own
 * for the formatting costs as long as the broker's start.
 */
public final class KafkaNode {
    private KafkaNode() {}

    public static void main(String[] args) throws IOException {
        String clusterId = args[0];
        String file = args[1];
        int status = StorageTool.execute(formatCommand(clusterId, file), System.out);
        if (status != 0) {
            System.exit(status);
        }
        kafka.Kafka.main(new String[] {file});
    }

    private static String[] formatCommand(String clusterId, String file) throws IOException {
        List<String> command =
                new ArrayList<>(
                        List.of("format", "--ignore-formatted", "-t", clusterId, "-c", file));
        if (needsVoters(file)) {
            command.add("--standalone");
        }
        return command.toArray(new String[0]);
    }

    /** A dynamic quorum is told its first voter at formatting; a static one names all in the file. */
    private static boolean needsVoters(String file) throws IOException {
        Properties properties = new Properties();
        try (Reader reader = new FileReader(file)) {
            properties.load(reader);
        }
        return !properties.containsKey("controller.quorum.voters")
                && properties.getProperty("process.roles", "").contains("controller");
    }
}
