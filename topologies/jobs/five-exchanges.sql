-- A chain of five keyed exchanges: each step counts within another group, so every record and every
-- barrier cross the network five times. The results of the steps depend on the order of arrival, so
-- only the record's own fields are compared. Records of one key may overtake each other in other
-- groups, so no order is expected.
--
-- streamquake:
--   outputs:
--     ends:
--       kafka: ends
--       identity: [key, seq]
--       compare: [index, amount]
--   expected: SELECT key, seq, index, amount, status FROM sent

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  `index` BIGINT,
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

CREATE TEMPORARY TABLE ends (
  `key` STRING,
  seq BIGINT,
  `index` BIGINT,
  amount BIGINT,
  steps BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.ends}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-ends',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
);

CREATE TEMPORARY VIEW first_step AS
SELECT `key`, seq, `index`, amount, arrived, COUNT(*) OVER (
  PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) AS steps
FROM input;

-- Each step uses the result of the previous one: the planner would remove a step with an unused result.
CREATE TEMPORARY VIEW second_step AS
SELECT `key`, seq, `index`, amount, arrived, MAX(steps) OVER (
  PARTITION BY amount ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) AS steps
FROM first_step;

CREATE TEMPORARY VIEW third_step AS
SELECT `key`, seq, `index`, amount, arrived, MAX(steps) OVER (
  PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) AS steps
FROM second_step;

CREATE TEMPORARY VIEW fourth_step AS
SELECT `key`, seq, `index`, amount, arrived, MAX(steps) OVER (
  PARTITION BY amount ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) AS steps
FROM third_step;

INSERT INTO ends
SELECT `key`, seq, `index`, amount, MAX(steps) OVER (
  PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
) AS steps
FROM fourth_step;
