-- A running total per key, as in running-totals.sql, with a second source beside the load: `datagen`
-- is a legacy source, which emits records under the checkpoint lock. Both sources feed the same
-- operator behind the exchange.
--
-- The records of datagen have other keys, and no amount. So they only use time and buffers. Their rows
-- have NULL totals, and a filter behind the operator drops them; the planner cannot push the filter
-- down, because it reads the operator's result.
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

CREATE TEMPORARY TABLE legacy (
  `number` INT,
  arrived AS PROCTIME()
) WITH (
  'connector' = 'datagen',
  'rows-per-second' = '1000',
  'fields.number.min' = '0',
  'fields.number.max' = '127'
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

CREATE TEMPORARY VIEW both_sources AS
SELECT `key`, seq, amount, arrived FROM input
UNION ALL
SELECT
  CONCAT('legacy-', CAST(`number` AS STRING)), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), arrived
FROM legacy;

INSERT INTO totals
SELECT `key`, seq, total, records
FROM (
  SELECT
    `key`,
    seq,
    SUM(amount) OVER so_far AS total,
    COUNT(*) OVER so_far AS records
  FROM both_sources
  WINDOW so_far AS (
    PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  )
)
WHERE total IS NOT NULL;
