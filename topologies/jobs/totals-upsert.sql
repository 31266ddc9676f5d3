-- A total per key, each replacing the previous one: a topic for compaction. A total is deleted when its
-- count of records is a multiple of 200, and is written again with the next record.
--
-- streamquake:
--   outputs:
--     totals:
--       kafka: totals
--       identity: [key]
--       compare: [total, records]
--       upsert: true
--       map: {key: "get_json_object(_key, '$.key')"}
--   expected: >
--     SELECT key, SUM(amount) AS total, COUNT(*) AS records FROM sent GROUP BY key
--     HAVING COUNT(*) % 200 != 0

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
  total BIGINT,
  records BIGINT,
  PRIMARY KEY (`key`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${output.totals}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-totals',
  'key.format' = 'json',
  'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

INSERT INTO totals
SELECT `key`, SUM(amount) AS total, COUNT(*) AS records FROM input GROUP BY `key`
HAVING MOD(COUNT(*), 200) <> 0;
