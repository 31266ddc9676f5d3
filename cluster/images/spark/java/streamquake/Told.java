package streamquake;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

/**
 * What a driver tells of itself, in the order in which it happened, to whoever asks over HTTP.
 *
 * <p>{@code GET /?after=N} answers with all that came after the first N, and waits up to a second
 * for something to come; {@code GET /now} with the last of each kind. {@code life} tells one driver process from the next. Executors load these
 * classes too, and tell nobody.
 */
final class Told {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long LIFE = System.currentTimeMillis();
    private static final long PATIENCE_MS = 1000;
    private static final List<ObjectNode> SO_FAR = new ArrayList<>();
    private static final Map<String, ObjectNode> LAST = new HashMap<>();
    private static boolean open = false;

    private Told() {}

    /** Answer questions from now on; a second call changes nothing. */
    static synchronized void open(int port) throws IOException {
        if (open) {
            return;
        }
        HttpServer server = HttpServer.create(new InetSocketAddress(port), 16);
        server.createContext("/", asked -> answer(asked, since(after(asked))));
        server.createContext("/now", asked -> answer(asked, now()));
        server.setExecutor(
                Executors.newCachedThreadPool(
                        work -> {
                            Thread thread = new Thread(work, "streamquake-told");
                            thread.setDaemon(true);
                            return thread;
                        }));
        server.start();
        open = true;
    }

    /** A new entry; it counts once it was handed to {@link #tell}. */
    static ObjectNode entry(String what, long atMs) {
        return JSON.createObjectNode().put("what", what).put("ms", atMs);
    }

    static ObjectNode entry(String what) {
        return entry(what, System.currentTimeMillis());
    }

    static synchronized void tell(ObjectNode entry) {
        if (open) {
            SO_FAR.add(entry.put("n", SO_FAR.size()));
            LAST.put(entry.get("what").asText(), entry);
            Told.class.notifyAll();
        }
    }

    /** JSON text as a value of an entry. */
    static void put(ObjectNode entry, String name, String json) {
        try {
            entry.set(name, JSON.readTree(json));
        } catch (IOException error) {
            entry.put(name, json);
        }
    }

    private static int after(HttpExchange asked) {
        String query = asked.getRequestURI().getQuery();
        return query == null ? 0 : Integer.parseInt(query.replaceFirst("^after=", ""));
    }

    private static void answer(HttpExchange asked, ObjectNode said) throws IOException {
        byte[] body = JSON.writeValueAsBytes(said);
        asked.getResponseHeaders().set("Content-Type", "application/json");
        asked.sendResponseHeaders(200, body.length);
        try (OutputStream out = asked.getResponseBody()) {
            out.write(body);
        }
    }

    private static synchronized ObjectNode now() {
        ObjectNode last = JSON.createObjectNode();
        LAST.forEach(last::set);
        ObjectNode answer = JSON.createObjectNode().put("life", LIFE);
        answer.set("last", last);
        return answer;
    }

    private static synchronized ObjectNode since(int after) {
        long end = System.currentTimeMillis() + PATIENCE_MS;
        long left = PATIENCE_MS;
        while (SO_FAR.size() == after && left > 0) {
            try {
                Told.class.wait(left);
                left = end - System.currentTimeMillis();
            } catch (InterruptedException stop) {
                Thread.currentThread().interrupt();
                break;
            }
        }
        ArrayNode news = JSON.createArrayNode();
        SO_FAR.subList(Math.min(after, SO_FAR.size()), SO_FAR.size()).forEach(news::add);
        ObjectNode answer = JSON.createObjectNode().put("life", LIFE);
        answer.set("news", news);
        return answer;
    }
}
