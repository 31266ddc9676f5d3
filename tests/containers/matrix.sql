-- Running totals to Kafka, keyed, so that subtasks exchange records. A record that cannot be read is
-- left out: poison must not end the job that the other faults disturb.
--
-- streamquake:
--   outputs:
--     totals: {kafka: totals, identity: [key, seq], compare: [total], order: seq}

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
  'format' = 'json',
  'json.ignore-parse-errors' = 'true'
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
  'properties.transaction.timeout.ms' = '900000',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-totals',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
);

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

INSERT INTO totals SELECT * FROM running_totals;
