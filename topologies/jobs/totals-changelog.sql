-- A total per key as a query's changelog: each record retracts the row of its key and writes the new
-- one, as Debezium does. At the end, one row per key is not retracted.
--
-- streamquake:
--   outputs:
--     totals:
--       kafka: totals
--       identity: [key]
--       compare: [total, records]
--       retracts: op = 'd'
--       map:
--         key: IF(op = 'd', before.key, after.key)
--         total: CAST(IF(op = 'd', before.total, after.total) AS BIGINT)
--         records: CAST(IF(op = 'd', before.records, after.records) AS BIGINT)
--   expected: SELECT key, SUM(amount) AS total, COUNT(*) AS records FROM sent GROUP BY key

CREATE TEMPORARY TABLE input (
  `key` STRING,
  amount BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE totals (
  `key` STRING,
  total BIGINT,
  records BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.totals}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-totals',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'debezium-json'
);

INSERT INTO totals
SELECT `key`, SUM(amount) AS total, COUNT(*) AS records FROM input GROUP BY `key`;
