package streamquake;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.FallbackKey;

/**
 * Prints every option that the classes of some jars declare: its key, its default, and its older
 * names. Options of tables, of formats and of Flink's own use are not settings, and left out.
 */
public final class ListOptions {
    private static final List<String> OTHERS =
            List.of("connector", "/formats/", "/table/factories/", "/table/filesystem/", "/shaded/");
    private static final int LONGEST_DEFAULT = 60;

    private ListOptions() {}

    public static void main(String[] jars) throws IOException {
        TreeMap<String, String> found = new TreeMap<>();
        for (String jar : jars) {
            try (JarFile file = new JarFile(jar)) {
                file.stream()
                        .map(entry -> entry.getName())
                        .filter(ListOptions::mayDeclare)
                        .forEach(name -> declared(name, found));
            }
        }
        found.values().forEach(System.out::println);
    }

    private static boolean mayDeclare(String name) {
        return name.startsWith("org/apache/flink/")
                && name.endsWith(".class")
                && OTHERS.stream().noneMatch(name::contains);
    }

    private static void declared(String file, TreeMap<String, String> found) {
        String name = file.substring(0, file.length() - ".class".length()).replace('/', '.');
        try {
            for (Field field : Class.forName(name, false, loader()).getDeclaredFields()) {
                if (Modifier.isStatic(field.getModifiers())
                        && field.getType() == ConfigOption.class) {
                    field.setAccessible(true);
                    add((ConfigOption<?>) field.get(null), found);
                }
            }
        } catch (ReflectiveOperationException | LinkageError incomplete) {
            // A class of a dependency that is not in the distribution; it declares no setting.
        }
    }

    private static ClassLoader loader() {
        return ListOptions.class.getClassLoader();
    }

    private static void add(ConfigOption<?> option, TreeMap<String, String> found) {
        String key = option.key();
        if (!key.contains(".") || key.matches("(\\$?internal\\.|.*<).*")) {
            return;
        }
        List<String> older = new ArrayList<>();
        for (FallbackKey other : option.fallbackKeys()) {
            older.add(other.getKey());
        }
        Collections.sort(older);
        String text = String.valueOf(option.defaultValue()).replaceAll("\\s+", " ");
        String shown = text.substring(0, Math.min(text.length(), LONGEST_DEFAULT));
        found.putIfAbsent(key, String.join("\t", key, shown, String.join(" ", older)));
    }
}
