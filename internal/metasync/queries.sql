-- These queries serve every engine: each must be valid in PostgreSQL, MySQL and MariaDB.

-- name: LockCluster :one
SELECT id, epoch, written_at, seen_at FROM proffer_cluster WHERE name = sqlc.arg(name) FOR UPDATE;

-- name: AddCluster :exec
INSERT INTO proffer_cluster (name, epoch, written_at) VALUES (sqlc.arg(name), 0, sqlc.arg(at));

-- name: RaiseEpoch :exec
UPDATE proffer_cluster SET epoch = sqlc.arg(epoch) WHERE id = sqlc.arg(id);

-- name: MarkWritten :exec
UPDATE proffer_cluster SET written_at = sqlc.arg(written_at), seen_at = sqlc.arg(seen_at) WHERE id = sqlc.arg(id);

-- name: ExtendGap :execrows
UPDATE proffer_gap SET valid_to = sqlc.arg(valid_to)
WHERE cluster_id = sqlc.arg(cluster_id) AND valid_from = sqlc.arg(valid_from);

-- name: AddGap :exec
INSERT INTO proffer_gap (cluster_id, reason, valid_from, valid_to)
VALUES (sqlc.arg(cluster_id), sqlc.arg(reason), sqlc.arg(valid_from), sqlc.arg(valid_to));

-- name: OpenConsumer :exec
INSERT INTO proffer_consumer (cluster_id, consumer, labels, valid_from)
VALUES (sqlc.arg(cluster_id), sqlc.arg(consumer), sqlc.arg(labels),
    sqlc.arg(valid_from));

-- name: CloseConsumer :execrows
UPDATE proffer_consumer SET valid_to = sqlc.arg(valid_to)
WHERE cluster_id = sqlc.arg(cluster_id) AND consumer = sqlc.arg(consumer) AND is_open = 1;

-- name: ListConsumers :many
SELECT consumer, labels, valid_from FROM proffer_consumer
WHERE cluster_id = sqlc.arg(cluster_id) AND is_open = 1;

-- name: OpenPolicy :exec
INSERT INTO proffer_policy_version (cluster_id, policy, uid, generation, spec, valid_from)
VALUES (sqlc.arg(cluster_id), sqlc.arg(policy), sqlc.arg(uid), sqlc.arg(generation), sqlc.arg(spec),
    sqlc.arg(valid_from));

-- name: ClosePolicy :execrows
UPDATE proffer_policy_version SET valid_to = sqlc.arg(valid_to)
WHERE cluster_id = sqlc.arg(cluster_id) AND policy = sqlc.arg(policy) AND is_open = 1;

-- name: ListPolicies :many
SELECT policy, uid, generation, valid_from FROM proffer_policy_version
WHERE cluster_id = sqlc.arg(cluster_id) AND is_open = 1;

-- name: OpenOffer :exec
INSERT INTO proffer_offer_interval (cluster_id, consumer, class, resource, policy, amount, valid_from)
VALUES (sqlc.arg(cluster_id), sqlc.arg(consumer), sqlc.arg(class), sqlc.arg(resource), sqlc.arg(policy), sqlc.arg(amount),
    sqlc.arg(valid_from));

-- name: CloseOffer :execrows
UPDATE proffer_offer_interval SET valid_to = sqlc.arg(valid_to)
WHERE cluster_id = sqlc.arg(cluster_id) AND consumer = sqlc.arg(consumer) AND class = sqlc.arg(class) AND resource = sqlc.arg(resource) AND is_open = 1;

-- name: ListOffers :many
SELECT consumer, class, resource, policy, amount, valid_from FROM proffer_offer_interval
WHERE cluster_id = sqlc.arg(cluster_id) AND is_open = 1;

-- name: OpenGrant :exec
INSERT INTO proffer_grant_interval (cluster_id, uid, resource, namespace, slice, consumer, class, policy, accepted, asked, granted, reason, price, currency, period, valid_from)
VALUES (sqlc.arg(cluster_id), sqlc.arg(uid), sqlc.arg(resource), sqlc.arg(namespace), sqlc.arg(slice), sqlc.arg(consumer), sqlc.arg(class), sqlc.arg(policy), sqlc.arg(accepted), sqlc.arg(asked), sqlc.arg(granted), sqlc.arg(reason), sqlc.arg(price), sqlc.arg(currency), sqlc.arg(period),
    sqlc.arg(valid_from));

-- name: CloseGrant :execrows
UPDATE proffer_grant_interval SET valid_to = sqlc.arg(valid_to)
WHERE cluster_id = sqlc.arg(cluster_id) AND uid = sqlc.arg(uid) AND resource = sqlc.arg(resource) AND is_open = 1;

-- name: ListGrants :many
SELECT uid, resource, namespace, slice, consumer, class, policy, accepted, asked, granted, reason, price, currency, period, valid_from FROM proffer_grant_interval
WHERE cluster_id = sqlc.arg(cluster_id) AND is_open = 1;

-- name: OpenUsage :exec
INSERT INTO proffer_usage_interval (cluster_id, consumer, class, resource, amount, granted, valid_from)
VALUES (sqlc.arg(cluster_id), sqlc.arg(consumer), sqlc.arg(class), sqlc.arg(resource), sqlc.arg(amount), sqlc.arg(granted),
    sqlc.arg(valid_from));

-- name: CloseUsage :execrows
UPDATE proffer_usage_interval SET valid_to = sqlc.arg(valid_to)
WHERE cluster_id = sqlc.arg(cluster_id) AND consumer = sqlc.arg(consumer) AND class = sqlc.arg(class) AND resource = sqlc.arg(resource) AND is_open = 1;

-- name: ListUsage :many
SELECT consumer, class, resource, amount, granted, valid_from FROM proffer_usage_interval
WHERE cluster_id = sqlc.arg(cluster_id) AND is_open = 1;

-- name: OpenPool :exec
INSERT INTO proffer_pool_interval (cluster_id, policy, resource, class, capacity, committed, remaining, valid_from)
VALUES (sqlc.arg(cluster_id), sqlc.arg(policy), sqlc.arg(resource), sqlc.arg(class), sqlc.arg(capacity), sqlc.arg(committed), sqlc.arg(remaining),
    sqlc.arg(valid_from));

-- name: ClosePool :execrows
UPDATE proffer_pool_interval SET valid_to = sqlc.arg(valid_to)
WHERE cluster_id = sqlc.arg(cluster_id) AND policy = sqlc.arg(policy) AND resource = sqlc.arg(resource) AND is_open = 1;

-- name: ListPools :many
SELECT policy, resource, class, capacity, committed, remaining, valid_from FROM proffer_pool_interval
WHERE cluster_id = sqlc.arg(cluster_id) AND is_open = 1;
