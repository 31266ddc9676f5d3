-- A total per key in a table of PostgreSQL. The sink writes at least once, and a repeated write replaces
-- the row with the same values: the table has each total exactly once.
--
-- streamquake:
--   outputs:
--     totals:
--       table: postgresql://postgres@${db.sql}/postgres/totals
--       identity: [key]
--       compare: [records, total]
--   expected: SELECT key, COUNT(*) AS records, SUM(amount) AS total FROM sent GROUP BY key

CREATE TEMPORARY TABLE input (
  `key` STRING,
  amount BIGINT
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
  records BIGINT,
  total BIGINT,
  PRIMARY KEY (`key`) NOT ENFORCED
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:postgresql://${db.sql}/postgres?user=postgres',
  'table-name' = '${output.totals}',
  'sink.buffer-flush.interval' = '500ms'
);

INSERT INTO totals
SELECT `key`, COUNT(*) AS records, SUM(amount) AS total FROM input GROUP BY `key`;
