-- Each row has one of two texts: a short one for the records of a negative amount, and the key for all
-- others.
--
-- streamquake:
--   outputs:
--     labels:
--       kafka: labels
--       identity: [key, seq]
--       compare: [label]
--       order: seq
--   expected: SELECT key, seq, IF(amount < 0, '-', key) AS label FROM sent

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  amount BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE labels (
  `key` STRING,
  seq BIGINT,
  label STRING
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.labels}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-labels',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
);

INSERT INTO labels SELECT `key`, seq, IF(amount < 0, '-', `key`) FROM input;
