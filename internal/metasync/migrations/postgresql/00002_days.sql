-- +goose Up

-- The days that views divide intervals into, in UTC, with the hours of their months.
CREATE TABLE proffer_day (
    day         DATE NOT NULL PRIMARY KEY,
    month_hours INTEGER NOT NULL
);
INSERT INTO proffer_day (day, month_hours)
SELECT CAST(day AS DATE), 24 * EXTRACT(DAY FROM DATE_TRUNC('month', day) + INTERVAL '1' MONTH - INTERVAL '1' DAY)
FROM GENERATE_SERIES(TIMESTAMP '2026-01-01', TIMESTAMP '2125-12-31', INTERVAL '1' DAY) AS days (day);

-- What was offered, granted and used on each day, in units times hours. A unit is a core, a GiB of memory or
-- storage, or one of anything else. An interval that is open ends at the time up to which the books are
-- complete.
CREATE VIEW proffer_offered_daily AS
SELECT c.name AS cluster, i.consumer, i.class, i.resource, d.day,
    ROUND(SUM(CAST(i.amount AS NUMERIC(20, 0)) * 1.000000000
        * CAST(EXTRACT(EPOCH FROM LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL '1' DAY) - GREATEST(i.valid_from, d.day)) * 1000000 AS NUMERIC(20, 0)))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END) / 3600000000, 9) AS unit_hours
FROM proffer_offer_interval AS i
JOIN proffer_cluster AS c ON c.id = i.cluster_id
JOIN proffer_day AS d ON d.day >= CAST(i.valid_from AS DATE) AND d.day <= CAST(COALESCE(i.valid_to, c.seen_at) AS DATE)
WHERE COALESCE(i.valid_to, c.seen_at) > i.valid_from
GROUP BY c.name, i.consumer, i.class, i.resource, d.day;

-- amount_due is NULL without a price.
CREATE VIEW proffer_granted_daily AS
SELECT c.name AS cluster, i.consumer, i.class, i.resource, d.day,
    i.currency,
    ROUND(SUM(CAST(i.granted AS NUMERIC(20, 0)) * 1.000000000
        * CAST(EXTRACT(EPOCH FROM LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL '1' DAY) - GREATEST(i.valid_from, d.day)) * 1000000 AS NUMERIC(20, 0)))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END) / 3600000000, 9) AS unit_hours,
    ROUND(SUM(CAST(i.granted AS NUMERIC(20, 0)) * i.price
        * CAST(EXTRACT(EPOCH FROM LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL '1' DAY) - GREATEST(i.valid_from, d.day)) * 1000000 AS NUMERIC(20, 0))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END)
        / (1000000.0 * CASE i.period WHEN 'Month' THEN d.month_hours * 3600 ELSE 3600 END)), 9) AS amount_due
FROM proffer_grant_interval AS i
JOIN proffer_cluster AS c ON c.id = i.cluster_id
JOIN proffer_day AS d ON d.day >= CAST(i.valid_from AS DATE) AND d.day <= CAST(COALESCE(i.valid_to, c.seen_at) AS DATE)
WHERE COALESCE(i.valid_to, c.seen_at) > i.valid_from
GROUP BY c.name, i.consumer, i.class, i.resource, d.day, i.currency;

CREATE VIEW proffer_used_daily AS
SELECT c.name AS cluster, i.consumer, i.class, i.resource, d.day,
    ROUND(SUM(CAST(i.amount AS NUMERIC(20, 0)) * 1.000000000
        * CAST(EXTRACT(EPOCH FROM LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL '1' DAY) - GREATEST(i.valid_from, d.day)) * 1000000 AS NUMERIC(20, 0)))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END) / 3600000000, 9) AS unit_hours,
    ROUND(SUM(CAST(i.granted AS NUMERIC(20, 0)) * 1.000000000
        * CAST(EXTRACT(EPOCH FROM LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL '1' DAY) - GREATEST(i.valid_from, d.day)) * 1000000 AS NUMERIC(20, 0)))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END) / 3600000000, 9) AS granted_unit_hours
FROM proffer_usage_interval AS i
JOIN proffer_cluster AS c ON c.id = i.cluster_id
JOIN proffer_day AS d ON d.day >= CAST(i.valid_from AS DATE) AND d.day <= CAST(COALESCE(i.valid_to, c.seen_at) AS DATE)
WHERE COALESCE(i.valid_to, c.seen_at) > i.valid_from
GROUP BY c.name, i.consumer, i.class, i.resource, d.day;

CREATE INDEX proffer_grant_interval_consumer ON proffer_grant_interval (cluster_id, consumer, valid_from);
