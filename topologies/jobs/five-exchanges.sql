-- A chain of five exchanges by key, one after the other: each step counts within another group, so
-- that every record crosses the network five times, and a barrier with it. The steps' figures depend
-- on the order of arrival; only what a record has from itself is compared. Records of one key may
-- overtake each other on their way through other groups, so no order is promised.
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

-- Each step needs what the one before it found: a step whose result is unused would be left out.
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
