-- Each order with the method of its payment, as soon as both have arrived.
--
-- streamquake:
--   outputs:
--     paid:
--       kafka: paid
--       identity: [id]
--       compare: [customer, cents, method]
--   expected: >
--     WITH orders AS (SELECT orders.* FROM sent WHERE topic = 'orders'),
--       payments AS (SELECT payments.* FROM sent WHERE topic = 'payments')
--     SELECT id, customer, cents, method FROM orders JOIN payments ON id = order_id

CREATE TEMPORARY TABLE orders (
  id BIGINT,
  customer STRING,
  cents BIGINT
) WITH (
  'connector' = 'kafka',
  'topic' = '${input.orders}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE payments (
  order_id BIGINT,
  `method` STRING
) WITH (
  'connector' = 'kafka',
  'topic' = '${input.payments}',
  'properties.bootstrap.servers' = '${source.bootstrap}',
  'properties.group.id' = '${run}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TEMPORARY TABLE paid (
  id BIGINT,
  customer STRING,
  cents BIGINT,
  `method` STRING
) WITH (
  'connector' = 'kafka',
  'topic' = '${output.paid}',
  'properties.bootstrap.servers' = '${sink.bootstrap}',
  'properties.transaction.timeout.ms' = '${sink.transaction-timeout-ms}',
  'sink.delivery-guarantee' = '${sink.guarantee}',
  'sink.transactional-id-prefix' = '${run}-paid',
  'key.format' = 'raw',
  'key.fields' = 'id',
  'value.format' = 'json'
);

INSERT INTO paid
SELECT id, customer, cents, `method` FROM orders JOIN payments ON id = order_id;
