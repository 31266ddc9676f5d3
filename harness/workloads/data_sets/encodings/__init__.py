"""How the records of a data set become the values of a topic: JSON, CSV, Avro or
Protobuf."""
