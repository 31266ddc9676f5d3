-- The newest change of each item that was not deleted.
--
-- streamquake:
--   outputs:
--     stock:
--       kafka: stock
--       identity: [item]
--       compare: [nth]
--       upsert: true
--       map: {item: "get_json_object(_key, '$.item')"}
--   expected: >
--     SELECT item, nth FROM (
--       SELECT item, nth, gone, ROW_NUMBER() OVER (PARTITION BY item ORDER BY nth DESC) AS newest FROM sent)
--     WHERE newest = 1 AND NOT gone

CREATE TEMPORARY TABLE changes (
  item STRING, nth BIGINT, gone BOOLEAN, PRIMARY KEY (item) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'key.format' = 'raw', 'value.format' = 'json'
);
CREATE TEMPORARY TABLE stock (
  item STRING, nth BIGINT, PRIMARY KEY (item) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${output.stock}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-stock',
  'key.format' = 'json', 'value.format' = 'json'
);
INSERT INTO stock SELECT item, nth FROM changes;
