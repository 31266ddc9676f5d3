-- Each record becomes a row for every number in its list `copies`, or one row if it has none: a
-- few records can produce many rows. Forward edges only, as in `copy.sql`.
--
-- streamquake:
--   outputs:
--     rows:
--       kafka: rows
--       identity: [key, seq, copy]
--       compare: [index, amount, checksum]
--       order: seq
--   expected: >
--     SELECT key, seq, copy, index, amount, checksum
--     FROM sent LATERAL VIEW explode(sequence(0L, copies - 1L)) AS copy

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  `index` BIGINT,
  amount BIGINT,
  checksum BIGINT,
  copies ARRAY<BIGINT>
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
  `index` BIGINT,
  amount BIGINT,
  checksum BIGINT
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

INSERT INTO exploded
SELECT `key`, seq, COALESCE(copy, 0), `index`, amount, checksum
FROM input LEFT JOIN UNNEST(copies) AS numbers (copy) ON TRUE;
