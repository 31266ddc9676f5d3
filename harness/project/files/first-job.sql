-- The job under test: Flink SQL that copies every record. Put yours in its place.
--
-- The comment below is its promise: what it writes, which columns identify a record, which must
-- agree, and the expected records, as Spark SQL over the sent ones. exactly_once compares the output
-- with it.
--
-- streamquake:
--   outputs:
--     first-copies:
--       kafka: first-copies
--       identity: [key, seq]
--       compare: [amount, payload]
--       order: seq
--   expected: SELECT key, seq, amount, payload FROM sent

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  amount BIGINT,
  payload STRING
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE copies WITH (
  'connector' = 'kafka',
  'topic' = '${output.first-copies}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-copies',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
) LIKE input (EXCLUDING OPTIONS);

INSERT INTO copies SELECT * FROM input;
