CREATE TABLE totals (
  key text PRIMARY KEY,
  records bigint NOT NULL,
  total bigint NOT NULL
);

CREATE TABLE payments (
  key text NOT NULL,
  seq bigint NOT NULL,
  amount bigint NOT NULL
);
