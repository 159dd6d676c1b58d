-- +goose Up

-- MySQL has no transactions for such statements. Each can be repeated, so that a migration that ended in the
-- middle is finished by the next one.

-- All times are UTC. Amounts are integers: cpu in milli, every other resource in whole units.

-- A cluster that keeps books in this database. epoch counts the processes that have led it. seen_at is the
-- time up to which its books are complete, written_at that of the last transaction.
CREATE TABLE IF NOT EXISTS proffer_cluster (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name       VARCHAR(253) NOT NULL,
    epoch      BIGINT NOT NULL,
    written_at DATETIME(6) NOT NULL,
    seen_at    DATETIME(6),
    CONSTRAINT proffer_cluster_name UNIQUE (name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A consumer that one of Liqo's objects describes, with its labels as JSON.
CREATE TABLE IF NOT EXISTS proffer_consumer (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    cluster_id BIGINT NOT NULL,
    consumer   VARCHAR(253) NOT NULL,
    labels     LONGTEXT NOT NULL,
    valid_from DATETIME(6) NOT NULL,
    valid_to   DATETIME(6),
    is_open    SMALLINT GENERATED ALWAYS AS (CASE WHEN valid_to IS NULL THEN 1 END) STORED,
    INDEX proffer_consumer_ended (cluster_id, valid_to),
    CONSTRAINT proffer_consumer_cluster FOREIGN KEY (cluster_id) REFERENCES proffer_cluster (id),
    CONSTRAINT proffer_consumer_open UNIQUE (cluster_id, consumer, is_open),
    CONSTRAINT proffer_consumer_forward CHECK (valid_to >= valid_from)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A valid ResourcePolicy, with its spec as JSON.
CREATE TABLE IF NOT EXISTS proffer_policy_version (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    cluster_id BIGINT NOT NULL,
    policy     VARCHAR(253) NOT NULL,
    uid        VARCHAR(63) NOT NULL,
    generation BIGINT NOT NULL,
    spec       LONGTEXT NOT NULL,
    valid_from DATETIME(6) NOT NULL,
    valid_to   DATETIME(6),
    is_open    SMALLINT GENERATED ALWAYS AS (CASE WHEN valid_to IS NULL THEN 1 END) STORED,
    INDEX proffer_policy_version_ended (cluster_id, valid_to),
    CONSTRAINT proffer_policy_version_cluster FOREIGN KEY (cluster_id) REFERENCES proffer_cluster (id),
    CONSTRAINT proffer_policy_version_open UNIQUE (cluster_id, policy, is_open),
    CONSTRAINT proffer_policy_version_forward CHECK (valid_to >= valid_from)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What a consumer was offered.
CREATE TABLE IF NOT EXISTS proffer_offer_interval (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    cluster_id BIGINT NOT NULL,
    consumer   VARCHAR(253) NOT NULL,
    class      VARCHAR(63) NOT NULL,
    resource   VARCHAR(317) NOT NULL,
    policy     VARCHAR(253) NOT NULL,
    amount     BIGINT NOT NULL,
    valid_from DATETIME(6) NOT NULL,
    valid_to   DATETIME(6),
    is_open    SMALLINT GENERATED ALWAYS AS (CASE WHEN valid_to IS NULL THEN 1 END) STORED,
    INDEX proffer_offer_interval_ended (cluster_id, valid_to),
    CONSTRAINT proffer_offer_interval_cluster FOREIGN KEY (cluster_id) REFERENCES proffer_cluster (id),
    CONSTRAINT proffer_offer_interval_open UNIQUE (cluster_id, consumer, class, resource, is_open),
    CONSTRAINT proffer_offer_interval_forward CHECK (valid_to >= valid_from)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What a ResourceSlice asked for and was granted. asked is NULL for a resource that it did not
-- ask for. price is for one unit and a period, NULL without a price.
CREATE TABLE IF NOT EXISTS proffer_grant_interval (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    cluster_id BIGINT NOT NULL,
    uid        VARCHAR(63) NOT NULL,
    resource   VARCHAR(317) NOT NULL,
    namespace  VARCHAR(63) NOT NULL,
    slice      VARCHAR(253) NOT NULL,
    consumer   VARCHAR(253) NOT NULL,
    class      VARCHAR(63) NOT NULL,
    policy     VARCHAR(253) NOT NULL,
    accepted   BOOLEAN NOT NULL,
    asked      BIGINT,
    granted    BIGINT NOT NULL,
    reason     VARCHAR(63) NOT NULL,
    price      DECIMAL(18,9),
    currency   VARCHAR(3) NOT NULL,
    period     VARCHAR(15) NOT NULL,
    valid_from DATETIME(6) NOT NULL,
    valid_to   DATETIME(6),
    is_open    SMALLINT GENERATED ALWAYS AS (CASE WHEN valid_to IS NULL THEN 1 END) STORED,
    INDEX proffer_grant_interval_ended (cluster_id, valid_to),
    INDEX proffer_grant_interval_consumer (cluster_id, consumer, valid_from),
    CONSTRAINT proffer_grant_interval_cluster FOREIGN KEY (cluster_id) REFERENCES proffer_cluster (id),
    CONSTRAINT proffer_grant_interval_open UNIQUE (cluster_id, uid, resource, is_open),
    CONSTRAINT proffer_grant_interval_forward CHECK (valid_to >= valid_from)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What the pods of a consumer requested of what it was offered, and what all its slices were granted
-- together.
CREATE TABLE IF NOT EXISTS proffer_usage_interval (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    cluster_id BIGINT NOT NULL,
    consumer   VARCHAR(253) NOT NULL,
    class      VARCHAR(63) NOT NULL,
    resource   VARCHAR(317) NOT NULL,
    amount     BIGINT NOT NULL,
    granted    BIGINT NOT NULL,
    valid_from DATETIME(6) NOT NULL,
    valid_to   DATETIME(6),
    is_open    SMALLINT GENERATED ALWAYS AS (CASE WHEN valid_to IS NULL THEN 1 END) STORED,
    INDEX proffer_usage_interval_ended (cluster_id, valid_to),
    CONSTRAINT proffer_usage_interval_cluster FOREIGN KEY (cluster_id) REFERENCES proffer_cluster (id),
    CONSTRAINT proffer_usage_interval_open UNIQUE (cluster_id, consumer, class, resource, is_open),
    CONSTRAINT proffer_usage_interval_forward CHECK (valid_to >= valid_from)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What a policy of nodes had to give: the pool, what of it was committed, and what remained.
CREATE TABLE IF NOT EXISTS proffer_pool_interval (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    cluster_id BIGINT NOT NULL,
    policy     VARCHAR(253) NOT NULL,
    resource   VARCHAR(317) NOT NULL,
    class      VARCHAR(63) NOT NULL,
    capacity   BIGINT NOT NULL,
    committed  BIGINT NOT NULL,
    remaining  BIGINT NOT NULL,
    valid_from DATETIME(6) NOT NULL,
    valid_to   DATETIME(6),
    is_open    SMALLINT GENERATED ALWAYS AS (CASE WHEN valid_to IS NULL THEN 1 END) STORED,
    INDEX proffer_pool_interval_ended (cluster_id, valid_to),
    CONSTRAINT proffer_pool_interval_cluster FOREIGN KEY (cluster_id) REFERENCES proffer_cluster (id),
    CONSTRAINT proffer_pool_interval_open UNIQUE (cluster_id, policy, resource, is_open),
    CONSTRAINT proffer_pool_interval_forward CHECK (valid_to >= valid_from)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A time in which nobody kept the books. reason is Stopped or Unreachable.
CREATE TABLE IF NOT EXISTS proffer_gap (
    id         BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    cluster_id BIGINT NOT NULL,
    reason     VARCHAR(63) NOT NULL,
    valid_from DATETIME(6) NOT NULL,
    valid_to   DATETIME(6) NOT NULL,
    INDEX proffer_gap_ended (cluster_id, valid_to),
    CONSTRAINT proffer_gap_cluster FOREIGN KEY (cluster_id) REFERENCES proffer_cluster (id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
