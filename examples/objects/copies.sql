-- Copies of the records, as JSON in an object store. A file is an upload in several parts, which a
-- checkpoint completes: a reader sees it as a whole, or not at all.
--
-- streamquake:
--   outputs:
--     copies:
--       s3: s3://results/copies
--       endpoint: http://${store.api}
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

CREATE TEMPORARY TABLE copies (
  `key` STRING,
  seq BIGINT,
  amount BIGINT
) WITH (
  'connector' = 'filesystem',
  'path' = '${output.copies}',
  'sink.rolling-policy.rollover-interval' = '5 s',
  'sink.rolling-policy.inactivity-interval' = '2 s',
  'sink.rolling-policy.check-interval' = '1 s',
  'format' = 'json'
);

INSERT INTO copies SELECT `key`, seq, amount FROM input;
