-- One source and two branches, each with its own exchange and its own sink: a running total per key,
-- and every record once by its number.
--
-- streamquake:
--   outputs:
--     totals:
--       kafka: totals
--       identity: [key, seq]
--       compare: [total]
--       order: seq
--     singles:
--       kafka: singles
--       identity: [key, seq]
--       compare: [index, amount]
--   expected: >
--     SELECT key, seq, index, amount,
--       SUM(amount) OVER (PARTITION BY key ORDER BY seq) AS total
--     FROM sent

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

CREATE TEMPORARY TABLE totals (
  `key` STRING,
  seq BIGINT,
  total BIGINT
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

CREATE TEMPORARY TABLE singles (
  `key` STRING,
  seq BIGINT,
  `index` BIGINT,
  amount BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.singles}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-singles',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
);

EXECUTE STATEMENT SET BEGIN
  INSERT INTO totals
  SELECT
    `key`,
    seq,
    SUM(amount) OVER (
      PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total
  FROM input;
  INSERT INTO singles
  SELECT `key`, seq, `index`, amount
  FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY `index` ORDER BY arrived) AS nth FROM input
  )
  WHERE nth = 1;
END;
