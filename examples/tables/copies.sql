-- Payments in a table without a primary key. The sink of SQL writes at least once: what it had written
-- since the last checkpoint is a second row after a failure.
--
-- streamquake:
--   outputs:
--     payments:
--       table: postgresql://postgres@${db.sql}/postgres/payments
--       identity: [key, seq]
--       compare: [amount]
--   expected: SELECT key, seq, amount FROM sent

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  amount BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE payments (
  `key` STRING,
  seq BIGINT,
  amount BIGINT
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:postgresql://${db.sql}/postgres?user=postgres',
  'table-name' = '${output.payments}',
  'sink.buffer-flush.interval' = '200ms'
);

INSERT INTO payments SELECT `key`, seq, amount FROM input;
