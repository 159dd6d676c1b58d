package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/process"
)

// poolerConfig is a configuration of PgBouncer with its defaults, except that it takes the sessions of
// the server in turn. Its placeholders are the port of the server, its own, its users, and what it pools.
const poolerConfig = `[databases]
* = host=127.0.0.1 port=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = scram-sha-256
auth_file = %s
pool_mode = %s
server_round_robin = 1
`

// PooledDSN is DSN through a PgBouncer that pools sessions or transactions, by its pool_mode. It ends with
// the test, which can call this once for a database.
func (d *Database) PooledDSN(t testing.TB, mode string) string {
	t.Helper()
	s, name := d.server, heldPooler+"-"+d.owner.database
	bouncer, err := find("pgbouncer", searchPath())
	test.Must(t, err)
	address := process.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	test.Must(t, err)
	_, servers, err := net.SplitHostPort(s.target())
	test.Must(t, err)
	test.Must(t, s.write(name+".users", fmt.Appendf(nil, "%q %q\n", d.owner.user, d.owner.password)))
	config := fmt.Appendf(nil, poolerConfig, servers, port, s.path(name+".users"), mode)
	test.Must(t, s.write(name+".ini", config))
	p, err := launch(context.WithoutCancel(t.Context()), s, name, []string{bouncer, s.path(name + ".ini")})
	test.Must(t, err)
	t.Cleanup(func() {
		test.Check(t, p.kill())
	})
	l := d.owner
	l.address = address
	db, err := s.open(l)
	test.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := errors.Join(p.Until(ctx, db.PingContext), db.Close()); err != nil {
		t.Fatalf("start PgBouncer: %v\n%s", err, s.Log())
	}
	return s.product.dsn(l, false)
}
