-- Every record is copied unchanged. The first start reads what arrives from then on; a restart has to
-- read on from its checkpoint, in every partition.
--
-- streamquake:
--   outputs:
--     copies:
--       kafka: copies
--       identity: [key, seq]
--       compare: [index, event_time_ms, amount, payload, checksum]
--       order: seq
--   expected: SELECT key, seq, index, event_time_ms, amount, payload, checksum FROM sent

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  `index` BIGINT,
  event_time_ms BIGINT,
  amount BIGINT,
  payload STRING,
  checksum BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'latest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE copies WITH (
  'connector' = 'kafka',
  'topic' = '${output.copies}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-copies',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
) LIKE input (EXCLUDING OPTIONS);

INSERT INTO copies SELECT * FROM input;
