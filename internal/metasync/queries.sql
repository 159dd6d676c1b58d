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
