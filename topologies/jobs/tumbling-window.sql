-- Records and amounts per key in windows of ten seconds of event time.
--
-- A window closes when the watermark passes its end, and the watermark is two seconds behind the
-- partition that is least advanced. So the windows around the end of the load never close, and
-- are not expected: expected are the windows that end before the final watermark, which the newest
-- records of all partitions determine. The watermark follows every record instead of a period, so the
-- newest record of a partition counts even if a late one follows it. Records less than two seconds
-- late are never dropped. The load distributes its keys over four partitions by number; each partition
-- must receive records, or no window closes.
--
-- streamquake:
--   lateness_ms: 2000
--   outputs:
--     windows:
--       kafka: windows
--       identity: [key, window_start_ms]
--       compare: [records, amount]
--       order: window_start_ms
--   expected: >
--     WITH least_advanced AS (
--       SELECT MIN(last_ms) - 2000 AS watermark_ms FROM (
--         SELECT MAX(event_time_ms) AS last_ms FROM sent
--         GROUP BY CAST(SUBSTRING(key, 3) AS INT) % 4
--       )
--     )
--     SELECT key, window_start_ms, COUNT(*) AS records, SUM(amount) AS amount
--     FROM (SELECT *, event_time_ms - event_time_ms % 10000 AS window_start_ms FROM sent)
--     WHERE window_start_ms + 9999 <= (SELECT watermark_ms FROM least_advanced)
--     GROUP BY key, window_start_ms

CREATE TEMPORARY TABLE input (
  `key` STRING,
  event_time_ms BIGINT,
  amount BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(event_time_ms, 3),
  WATERMARK FOR event_time AS event_time - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'scan.watermark.emit.strategy' = 'on-event',
  'format' = 'json'
);

CREATE TEMPORARY TABLE windows (
  `key` STRING,
  window_start_ms BIGINT,
  records BIGINT,
  amount BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.windows}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-windows',
  'key.format' = 'raw',
  'key.fields' = 'key',
  'value.format' = 'json'
);

INSERT INTO windows
SELECT
  `key`,
  MIN(event_time_ms) - MOD(MIN(event_time_ms), 10000) AS window_start_ms,
  COUNT(*) AS records,
  SUM(amount) AS amount
FROM TABLE(TUMBLE(TABLE input, DESCRIPTOR(event_time), INTERVAL '10' SECOND))
GROUP BY `key`, window_start, window_end;
