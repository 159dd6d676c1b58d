-- +goose Up

-- The days that views divide intervals into, in UTC, with the hours of their months.
CREATE TABLE IF NOT EXISTS proffer_day (
    day         DATE NOT NULL PRIMARY KEY,
    month_hours INTEGER NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
INSERT IGNORE INTO proffer_day (day, month_hours)
WITH digits AS (
    SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9
), days AS (
    SELECT DATE '2026-01-01' + INTERVAL (a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n) DAY AS day
    FROM digits AS a, digits AS b, digits AS c, digits AS d, digits AS e
)
SELECT day, 24 * DAY(LAST_DAY(day)) FROM days WHERE day <= DATE '2125-12-31';

-- What was offered, granted and used on each day, in units times hours. A unit is a core, a GiB of memory or
-- storage, or one of anything else. An interval that is open ends at the time up to which the books are
-- complete. The views run with the rights of whoever reads them, so that they outlive the account that made
-- them.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW proffer_offered_daily AS
SELECT c.name AS cluster, i.consumer, i.class, i.resource, d.day,
    ROUND(SUM(CAST(i.amount AS DECIMAL(20, 0)) * 1.000000000
        * TIMESTAMPDIFF(MICROSECOND, GREATEST(i.valid_from, d.day), LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL 1 DAY)))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END) / 3600000000, 9) AS unit_hours
FROM proffer_offer_interval AS i
JOIN proffer_cluster AS c ON c.id = i.cluster_id
JOIN proffer_day AS d ON d.day >= CAST(i.valid_from AS DATE) AND d.day <= CAST(COALESCE(i.valid_to, c.seen_at) AS DATE)
WHERE COALESCE(i.valid_to, c.seen_at) > i.valid_from
GROUP BY c.name, i.consumer, i.class, i.resource, d.day;

-- amount_due is NULL without a price.
CREATE OR REPLACE SQL SECURITY INVOKER VIEW proffer_granted_daily AS
SELECT c.name AS cluster, i.consumer, i.class, i.resource, d.day,
    i.currency,
    ROUND(SUM(CAST(i.granted AS DECIMAL(20, 0)) * 1.000000000
        * TIMESTAMPDIFF(MICROSECOND, GREATEST(i.valid_from, d.day), LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL 1 DAY)))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END) / 3600000000, 9) AS unit_hours,
    ROUND(SUM(CAST(i.granted AS DECIMAL(20, 0)) * i.price
        * TIMESTAMPDIFF(MICROSECOND, GREATEST(i.valid_from, d.day), LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL 1 DAY))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END)
        / (1000000.0 * CASE i.period WHEN 'Month' THEN d.month_hours * 3600 ELSE 3600 END)), 9) AS amount_due
FROM proffer_grant_interval AS i
JOIN proffer_cluster AS c ON c.id = i.cluster_id
JOIN proffer_day AS d ON d.day >= CAST(i.valid_from AS DATE) AND d.day <= CAST(COALESCE(i.valid_to, c.seen_at) AS DATE)
WHERE COALESCE(i.valid_to, c.seen_at) > i.valid_from
GROUP BY c.name, i.consumer, i.class, i.resource, d.day, i.currency;

CREATE OR REPLACE SQL SECURITY INVOKER VIEW proffer_used_daily AS
SELECT c.name AS cluster, i.consumer, i.class, i.resource, d.day,
    ROUND(SUM(CAST(i.amount AS DECIMAL(20, 0)) * 1.000000000
        * TIMESTAMPDIFF(MICROSECOND, GREATEST(i.valid_from, d.day), LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL 1 DAY)))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END) / 3600000000, 9) AS unit_hours,
    ROUND(SUM(CAST(i.granted AS DECIMAL(20, 0)) * 1.000000000
        * TIMESTAMPDIFF(MICROSECOND, GREATEST(i.valid_from, d.day), LEAST(COALESCE(i.valid_to, c.seen_at), d.day + INTERVAL 1 DAY)))
        / (CASE i.resource WHEN 'cpu' THEN 1000 WHEN 'memory' THEN 1073741824 WHEN 'storage' THEN 1073741824
        WHEN 'ephemeral-storage' THEN 1073741824 ELSE 1 END) / 3600000000, 9) AS granted_unit_hours
FROM proffer_usage_interval AS i
JOIN proffer_cluster AS c ON c.id = i.cluster_id
JOIN proffer_day AS d ON d.day >= CAST(i.valid_from AS DATE) AND d.day <= CAST(COALESCE(i.valid_to, c.seen_at) AS DATE)
WHERE COALESCE(i.valid_to, c.seen_at) > i.valid_from
GROUP BY c.name, i.consumer, i.class, i.resource, d.day;
