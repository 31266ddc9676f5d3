-- One row: how many records have an even amount, and how many there are. The filter is the first column
-- that the aggregate reads.
--
-- streamquake:
--   outputs:
--     counts:
--       kafka: counts
--       identity: [part]
--       compare: [even, records]
--       upsert: true
--       map: {part: "get_json_object(_key, '$.part')"}
--   expected: >
--     SELECT 'all' AS part, COUNT_IF(amount % 2 = 0) AS even, COUNT(*) AS records FROM sent

CREATE TEMPORARY TABLE input (
  amount BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE counts (
  `part` STRING,
  even BIGINT,
  records BIGINT,
  PRIMARY KEY (`part`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${output.counts}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-counts',
  'key.format' = 'json',
  'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

INSERT INTO counts
SELECT 'all', COUNT(*) FILTER (WHERE MOD(amount, 2) = 0), COUNT(*) FROM input;
