-- Every record is copied, and those without a partner are written to a second topic: a left join with the
-- records of odd numbers, of which the rows without a right side remain.
--
-- streamquake:
--   outputs:
--     copies:
--       kafka: copies
--       identity: [key, seq]
--       compare: [index]
--     unmatched:
--       kafka: unmatched
--       identity: [index]
--       compare: [seq]
--       upsert: true
--       map: {index: "CAST(get_json_object(_key, '$.index') AS BIGINT)"}
--       expected: SELECT index, seq FROM sent WHERE index % 2 = 0
--   expected: SELECT key, seq, index FROM sent

CREATE TEMPORARY TABLE input (
  `key` STRING,
  seq BIGINT,
  `index` BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE copies WITH (
  'connector' = 'kafka',
  'topic' = '${output.copies}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-copies',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
) LIKE input (EXCLUDING OPTIONS);

CREATE TEMPORARY TABLE unmatched (
  `index` BIGINT,
  seq BIGINT,
  PRIMARY KEY (`index`) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${output.unmatched}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-unmatched',
  'key.format' = 'json',
  'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

CREATE TEMPORARY VIEW odd AS
SELECT `index` AS other FROM input WHERE MOD(`index`, 2) = 1;

EXECUTE STATEMENT SET BEGIN
  INSERT INTO copies SELECT * FROM input;
  INSERT INTO unmatched
  SELECT `index`, seq FROM input LEFT JOIN odd ON `index` = other
  WHERE other IS NULL AND `index` < 1000000000;
END;
