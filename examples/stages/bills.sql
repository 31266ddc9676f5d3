-- The second stage: reads what the first one has committed, and adds a fee.
--
-- streamquake:
--   outputs:
--     bills:
--       kafka: bills
--       identity: [key, seq]
--       compare: [cents]
--       order: seq
--   expected: SELECT key, seq, amount * 100 + 50 AS cents FROM sent

CREATE TEMPORARY TABLE enriched (
  `key` STRING,
  seq BIGINT,
  cents BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${input.enriched}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE bills WITH (
  'topic' = '${output.bills}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-bills',
  'connector' = 'kafka',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
) LIKE enriched (EXCLUDING OPTIONS);

INSERT INTO bills SELECT `key`, seq, cents + 50 FROM enriched;
