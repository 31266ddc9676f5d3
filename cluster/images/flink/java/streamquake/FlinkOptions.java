package streamquake;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.flink.configuration.GlobalConfiguration;
import org.apache.flink.runtime.util.bash.BashJavaUtils;

/**
 * Prints what must be known before a Flink JVM starts: its flags ("jvm …") and the arguments its
 * main class is told ("flink …"). Flink's own tool computes the memory from the configuration
 * folder and the -D arguments that follow it.
 */
public final class FlinkOptions {
    private static final String GATEWAY_HEAP = "-Xmx384m";
    private static final String RESULT = "BASH_JAVA_UTILS_EXEC_RESULT:";

    private FlinkOptions() {}

    public static void main(String[] args) throws Exception {
        String role = args[0];
        String folder = args[1];
        String[] dynamic = Arrays.copyOfRange(args, 2, args.length);
        switch (role) {
            case "jobmanager" -> memory("GET_JM_RESOURCE_PARAMS", folder, dynamic);
            case "taskmanager" -> memory("GET_TM_RESOURCE_PARAMS", folder, dynamic);
            default -> print("jvm", GATEWAY_HEAP);
        }
        userFlags(GlobalConfiguration.loadConfiguration(folder).toMap(), role);
    }

    private static void memory(String command, String folder, String[] dynamic) throws Exception {
        String[] call = {command, "--configDir", folder};
        String[] all =
                Stream.concat(Arrays.stream(call), Arrays.stream(dynamic)).toArray(String[]::new);
        List<String> answers =
                output(all).lines()
                        .filter(line -> line.startsWith(RESULT))
                        .map(line -> line.substring(RESULT.length()))
                        .toList();
        print("jvm", answers.get(0));
        print("flink", answers.get(1));
    }

    private static String output(String[] call) throws Exception {
        PrintStream console = System.out;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        System.setOut(new PrintStream(bytes, true));
        try {
            BashJavaUtils.main(call);
        } finally {
            System.setOut(console);
        }
        return bytes.toString();
    }

    private static void userFlags(Map<String, String> configuration, String role) {
        for (String key :
                List.of(
                        "env.java.default-opts.all",
                        "env.java.default-opts." + role,
                        "env.java.opts",
                        "env.java.opts.all",
                        "env.java.opts." + role)) {
            print("jvm", configuration.getOrDefault(key, ""));
        }
    }

    private static void print(String kind, String words) {
        words.lines()
                .flatMap(line -> Arrays.stream(line.strip().split("\\s+")))
                .filter(word -> !word.isEmpty())
                .forEach(word -> System.out.println(kind + " " + word));
    }
}
