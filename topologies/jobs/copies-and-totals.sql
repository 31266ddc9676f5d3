-- One source and two branches: every record is copied as it is, and a running total per key crosses the
-- network. A writer with two inputs is not chained to the source, so the source's vertex has a forward
-- output beside the hash output.
--
-- streamquake:
--   outputs:
--     copies:
--       kafka: copies
--       identity: [key, seq]
--       compare: [amount]
--     totals:
--       kafka: totals
--       identity: [key, seq]
--       compare: [total]
--       order: seq
--   expected: >
--     SELECT key, seq, amount,
--       SUM(amount) OVER (PARTITION BY key ORDER BY seq) AS total
--     FROM sent

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

CREATE TEMPORARY TABLE copies (
  `key` STRING,
  seq BIGINT,
  amount BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.copies}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-copies',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
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

EXECUTE STATEMENT SET BEGIN
  INSERT INTO copies
  SELECT `key`, seq, amount FROM input WHERE MOD(seq, 2) = 0
  UNION ALL
  SELECT `key`, seq, amount FROM input WHERE MOD(seq, 2) = 1;
  INSERT INTO totals
  SELECT
    `key`,
    seq,
    SUM(amount) OVER (
      PARTITION BY `key` ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total
  FROM input;
END;
