package example;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.jdbc.JdbcExactlyOnceOptions;
import org.apache.flink.connector.jdbc.JdbcExecutionOptions;
import org.apache.flink.connector.jdbc.core.datastream.sink.JdbcSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.JsonProcessingException;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.postgresql.xa.PGXADataSource;

/**
 * Copies payments from a topic into a table that has no primary key, so that a repeated write would
 * be a second row. The sink's transactions (XA) end with the checkpoints: each payment is in the
 * table exactly once.
 */
public final class Payments {

  private static final ObjectMapper JSON = new ObjectMapper();

  private Payments() {}

  /** Arguments: bootstrap servers, topic, JDBC URL, table. */
  public static void main(String[] args) throws Exception {
    String servers = args[0];
    String topic = args[1];
    String url = args[2];
    String table = args[3];
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
    KafkaSource<String> source =
        KafkaSource.<String>builder()
            .setBootstrapServers(servers)
            .setTopics(topic)
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
    JdbcSink<String> sink =
        JdbcSink.<String>builder()
            .withQueryStatement(
                "INSERT INTO " + table + " (key, seq, amount) VALUES (?, ?, ?)",
                (statement, text) -> {
                  JsonNode payment = parsed(text);
                  statement.setString(1, payment.get("key").asText());
                  statement.setLong(2, payment.get("seq").asLong());
                  statement.setLong(3, payment.get("amount").asLong());
                })
            // A transaction cannot be continued after an error, so the job restarts instead.
            .withExecutionOptions(JdbcExecutionOptions.builder().withMaxRetries(0).build())
            .buildExactlyOnce(
                // A connection of PostgreSQL can have only one transaction at a time.
                JdbcExactlyOnceOptions.builder().withTransactionPerConnection(true).build(),
                () -> {
                  PGXADataSource database = new PGXADataSource();
                  database.setUrl(url);
                  return database;
                });
    env.fromSource(source, WatermarkStrategy.noWatermarks(), "payments").sinkTo(sink).name("table");
    env.execute();
  }

  private static JsonNode parsed(String text) {
    try {
      return JSON.readTree(text);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("no JSON: " + text, error);
    }
  }
}
