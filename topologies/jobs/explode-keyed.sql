-- Each record becomes a row for every number in its list `copies`, or one row if it has none, and
-- the rows are counted by key behind an exchange: all rows of a record go to one subtask.
--
-- streamquake:
--   outputs:
--     rows:
--       kafka: rows
--       identity: [key, seq, copy]
--       compare: [number]
--       order: number
--   expected: >
--     SELECT key, seq, copy,
--       ROW_NUMBER() OVER (PARTITION BY key ORDER BY seq, copy) AS number
--     FROM sent LATERAL VIEW explode(sequence(0L, copies - 1L)) AS copy

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  copies ARRAY<BIGINT>,
  arrived AS PROCTIME()
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE exploded (
  `key` STRING,
  seq BIGINT,
  copy BIGINT,
  `number` BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.rows}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-rows',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
);

CREATE TEMPORARY VIEW copied AS
SELECT `key`, seq, COALESCE(copy, 0) AS copy, arrived
FROM input LEFT JOIN UNNEST(copies) AS numbers (copy) ON TRUE;

INSERT INTO exploded
SELECT `key`, seq, copy, COUNT(*) OVER so_far AS `number`
FROM copied
WINDOW so_far AS (
  PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
