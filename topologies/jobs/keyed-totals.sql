-- A running total per key: each record produces exactly one row, with the total of its key so far.
-- Records cross the network by key, so the whole job is one region. The rows go to a topic and to
-- files in one job: both sinks commit at the same checkpoints.
--
-- streamquake:
--   outputs:
--     totals:
--       kafka: totals
--       identity: [key, seq]
--       compare: [total, records]
--       order: seq
--     totals-files:
--       hdfs: /output/totals
--       identity: [key, seq]
--       compare: [total, records]
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

-- Files of rows do not close at a checkpoint by themselves. These close after 5 s, or after 2 s
-- without a row, and the first checkpoint after that commits them.
CREATE TEMPORARY TABLE totals_files WITH (
  'connector' = 'filesystem',
  'path' = '${output.totals-files}',
  'sink.rolling-policy.rollover-interval' = '5 s',
  'sink.rolling-policy.inactivity-interval' = '2 s',
  'sink.rolling-policy.check-interval' = '1 s',
  'format' = 'json'
) LIKE totals (EXCLUDING OPTIONS);

CREATE TEMPORARY VIEW running_totals AS
SELECT
  `key`,
  seq,
  SUM(amount) OVER so_far AS total,
  COUNT(*) OVER so_far AS records
FROM input
WINDOW so_far AS (
  PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);

EXECUTE STATEMENT SET BEGIN
  INSERT INTO totals SELECT * FROM running_totals;
  INSERT INTO totals_files SELECT * FROM running_totals;
END;
