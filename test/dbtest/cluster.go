package dbtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// galera returns the path of Galera's library. PROFFER_GALERA overrides the path of Debian's package galera-4,
// which mariadb-server depends on.
func galera() string { return cmp.Or(os.Getenv("PROFFER_GALERA"), "/usr/lib/galera/libgalera_smm.so") }

// StartCluster starts the two nodes of a cluster of MariaDB and Galera, which end with the test. Both take
// writes. They refuse tables without a primary key, and rows of other engines than InnoDB.
func StartCluster(t testing.TB, settings ...string) (first, second *Server) {
	t.Helper()
	addresses, err := process.FreeAddresses(6)
	test.Must(t, err)
	first = startNode(t, "gcomm://", addresses[:3], settings)
	return first, startNode(t, "gcomm://"+addresses[0], addresses[3:], settings)
}

// startNode starts a node that joins others. Its addresses are those of the group, and of the two ways by
// which it gets the data of another node.
func startNode(t testing.TB, others string, addresses, settings []string) *Server {
	t.Helper()
	_, err := find("rsync", searchPath())
	test.Must(t, err)
	all := append([]string{
		"wsrep-on=ON", "wsrep-provider=" + galera(), "wsrep-cluster-address=" + others, "wsrep-node-address=127.0.0.1",
		fmt.Sprintf("wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=%s;gcache.size=16M",
			addresses[0], addresses[1]),
		"wsrep-sst-method=rsync", "wsrep-sst-receive-address=" + addresses[2],
		"wsrep-mode=STRICT_REPLICATION,REQUIRED_PRIMARY_KEY", "binlog-format=ROW", "innodb-autoinc-lock-mode=2",
	}, settings...)
	s, err := start(context.WithoutCancel(t.Context()), MySQL, Options{Settings: all})
	// A process of the class SCHED_IDLE may not leave it, but Galera gives its threads the class SCHED_OTHER.
	if err != nil && strings.Contains(err.Error(), "Failed to set thread schedparams") {
		t.Skip("Galera does not run under chrt --idle")
	}
	endWith(t, s, err)
	s.clustered = true
	test.EventuallyWithin(t, startTimeout, func() error {
		var name, ready string
		err := s.admin.QueryRowContext(t.Context(), "SHOW STATUS LIKE 'wsrep_ready'").Scan(&name, &ready)
		if err == nil && ready != "ON" {
			err = fmt.Errorf("wsrep_ready is %s", ready)
		}
		return err
	})
	return s
}

// DSNOn is DSN through another node of the cluster, past the proxy. It waits until the node has the database.
func (d *Database) DSNOn(t testing.TB, node *Server) string {
	t.Helper()
	owner := d.owner
	owner.address = node.target()
	db, err := node.open(owner)
	test.Must(t, err)
	defer func() { _ = db.Close() }()
	test.EventuallyWithin(t, statementTimeout, func() error { return db.PingContext(t.Context()) })
	return d.server.product.dsn(owner, false)
}
