package metasync

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	config "proffer.dev/proffer/api/config/v1alpha1"
)

// serverSettings maps the names of a server's settings to their values. They decide how books are kept in it,
// and whether they can be.
type serverSettings map[string]string

// settingsQueries read the settings of each engine. A server that lacks one returns no row for it.
var settingsQueries = map[config.DatabaseEngine]string{
	config.PostgreSQL: "SELECT name, setting FROM pg_settings WHERE name = 'server_encoding'",
	config.MySQL: "SHOW VARIABLES WHERE Variable_name IN " +
		"('binlog_format', 'innodb_page_size', 'log_bin', 'wsrep_on', 'wsrep_osu_method')",
}

// minPageSize is the page size of InnoDB with which the keys of all tables fit into an index.
const minPageSize = 16384

// readSettings returns the settings of a server, or an error if it cannot keep books with them.
func readSettings(
	ctx context.Context, pool *sql.DB, engine config.DatabaseEngine, timeout time.Duration,
) (serverSettings, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s := serverSettings{}
	err := eachRow(ctx, pool, settingsQueries[engine], nil, func(rows *sql.Rows) error {
		var name, value string
		err := rows.Scan(&name, &value)
		s[strings.ToLower(name)] = value // Percona XtraDB Cluster has a wsrep_OSU_method.
		return err
	})
	return s, errors.Join(err, s.refused())
}

// refused returns why no books can be kept with these settings, and what to change.
func (s serverSettings) refused() error {
	if encoding, known := s["server_encoding"]; known && encoding != "UTF8" {
		return fmt.Errorf("the database has the encoding %s, in which not every name can be written: "+
			"create it with ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	if size, err := strconv.Atoi(s["innodb_page_size"]); err == nil && size < minPageSize {
		return fmt.Errorf("the server's innodb_page_size is %d, with which the keys of the tables do not fit into "+
			"an index: use a server that was initialized with %d or more", size, minPageSize)
	}
	if s["wsrep_on"] == "ON" && s["wsrep_osu_method"] == "RSU" {
		return errors.New("the server's wsrep_OSU_method is RSU, with which tables are created on one node of the " +
			"cluster only: set it to TOI on each node")
	}
	return nil
}

// isolation returns the isolation of passes. InnoDB takes no READ COMMITTED while the binary log has
// statements. REPEATABLE READ serves as well there: a pass reads nothing before it has the lock of its
// cluster, and InnoDB's view begins with the first read. The first passes of two new clusters can
// deadlock there, and are repeated.
func (s serverSettings) isolation() sql.IsolationLevel {
	if s["log_bin"] == "ON" && s["binlog_format"] == "STATEMENT" {
		return sql.LevelRepeatableRead
	}
	return sql.LevelReadCommitted
}
