"""Apache Kafka: brokers in KRaft mode."""
