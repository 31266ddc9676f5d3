-- Two running totals in a row, in three vertices: the source, the first totals, and the second totals
-- with the sink. So a vertex in the middle has producers and consumers. Each subtask of the second
-- totals writes to its own partition: 'fixed' maps subtask n to partition n. Only the record's own
-- fields are compared: a failover that does not rewind the other tasks may lose records, and then the
-- totals after them are lower.
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

-- The second step groups by another text of the same key, so its records cross the network again and
-- a key keeps its order.
CREATE TEMPORARY VIEW first_totals AS
SELECT `key`, seq, `index`, amount, checksum, arrived, CONCAT('second ', `key`) AS second_key,
  SUM(amount) OVER (
    PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS total
FROM input;

INSERT INTO totals
SELECT
  `key`,
  seq,
  `index`,
  amount,
  checksum,
  MAX(total) OVER so_far AS total,
  COUNT(*) OVER so_far AS records
FROM first_totals
WINDOW so_far AS (
  PARTITION BY second_key ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
