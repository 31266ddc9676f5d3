-- A running total per key, written only to a topic: each record produces exactly one row. Two vertices
-- and one exchange by key; the totals and their sink are one task, with nothing downstream of it.
--
-- streamquake:
--   outputs:
--     totals:
--       kafka: totals
--       identity: [key, seq]
--       compare: [total, records]
--       order: seq
--   expected: >
--     SELECT key, seq,
--       SUM(amount) OVER so_far AS total,
--       COUNT(*) OVER so_far AS records
--     FROM sent
--     WINDOW so_far AS (PARTITION BY key ORDER BY seq)

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  amount BIGINT,
  arrived AS PROCTIME()
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
  seq BIGINT,
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
  'value.format' = 'json'
);

INSERT INTO totals
SELECT
  `key`,
  seq,
  SUM(amount) OVER so_far AS total,
  COUNT(*) OVER so_far AS records
FROM input
WINDOW so_far AS (
  PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
