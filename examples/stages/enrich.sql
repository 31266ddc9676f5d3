-- The first stage: each record with its amount in cents, into a topic that the next stage reads.
--
-- streamquake:
--   outputs:
--     enriched:
--       kafka: enriched

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

CREATE TEMPORARY TABLE enriched (
  `key` STRING,
  seq BIGINT,
  cents BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.enriched}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-enriched',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
);

INSERT INTO enriched SELECT `key`, seq, amount * 100 FROM input;
