-- A running total per key, as in keyed-totals.sql, but each counting subtask writes to its own
-- partition: 'fixed' maps subtask n to partition n. So a partition identifies the subtask of its keys.
-- The parallelism must not exceed the number of partitions. Only the record's own fields are
-- compared: a failover that does not rewind the other tasks may lose records, and then the totals
-- after them are lower.
--
-- streamquake:
--   outputs:
--     totals:
--       kafka: totals
--       identity: [key, seq]
--       compare: [index, amount, checksum]
--       order: seq
--   partitions: 4
--   expected: SELECT key, seq, index, amount, checksum, status FROM sent

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  `index` BIGINT,
  amount BIGINT,
  checksum BIGINT,
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
  `index` BIGINT,
  amount BIGINT,
  checksum BIGINT,
  total BIGINT,
  records BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.totals}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.partitioner' = 'fixed',
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
  `index`,
  amount,
  checksum,
  SUM(amount) OVER so_far AS total,
  COUNT(*) OVER so_far AS records
FROM input
WINDOW so_far AS (
  PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
