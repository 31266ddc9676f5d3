-- What each customer has spent so far: one row for each order.
--
-- streamquake:
--   outputs:
--     spending:
--       kafka: spending
--       identity: [customer, nth]
--       compare: [spent, note]
--       order: nth
--       order_by: [customer]
--   expected: >
--     SELECT customer, nth, note, SUM(cents) OVER (PARTITION BY customer ORDER BY nth) AS spent
--     FROM sent

CREATE TEMPORARY TABLE orders (
  customer STRING,
  nth BIGINT,
  cents BIGINT,
  note STRING,
  arrived AS PROCTIME()
) WITH (
  'connector' = 'kafka',
  'topic' = '${input}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE spending (
  customer STRING,
  nth BIGINT,
  note STRING,
  spent BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.spending}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-spending',
  'key.format' = 'raw',
  'key.fields' = 'customer',
  'value.format' = 'json'
);

INSERT INTO spending
SELECT customer, nth, note, SUM(cents) OVER so_far
FROM orders
WINDOW so_far AS (
  PARTITION BY customer ORDER BY arrived ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);
