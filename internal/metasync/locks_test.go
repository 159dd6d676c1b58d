package metasync

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// migrateFourTimes has four processes with these options in turn migrate at the same time, each again while
// it fails and may, and returns how many migrations they have applied.
func migrateFourTimes(t *testing.T, again int, options ...*Options) (total int) {
	t.Helper()
	applied, failed := make(chan int, 4), make(chan error, 4)
	for i := range 4 {
		go func() {
			var count int
			var err error
			for range again + 1 {
				var all []Migrated
				all, err = Migrate(t.Context(), options[i%len(options)])
				if count += len(all); err == nil {
					break
				}
			}
			applied <- count
			failed <- err
		}()
	}
	for range 4 {
		test.Check(t, <-failed)
		total += <-applied
	}
	return total
}

// refuseLocks returns a data source name of a database whose server refuses what is prohibited with an
// error: such statements are replaced on their way.
func refuseLocks(t *testing.T, b *books, number int, message string) string {
	t.Helper()
	c, err := mysql.ParseDSN(b.database.DSN())
	test.Must(t, err)
	server := c.Addr
	c.Addr = test.Serve(t, func(client net.Conn) { replaceLocks(client, server, number, message) })
	return c.FormatDSN()
}

// prohibited matches the statements that Percona XtraDB Cluster refuses in its strict mode: locks by name
// and of tables, SERIALIZABLE, tables made of rows, tablespaces that are moved, and XA.
var prohibited = regexp.MustCompile(`(?i)\b((GET|RELEASE|IS_FREE|IS_USED)_LOCK|RELEASE_ALL_LOCKS)\b|` +
	`\bLOCK TABLES?\b|\bWITH READ LOCK\b|\bSERIALIZABLE\b|\bCREATE( OR REPLACE)?( TEMPORARY)? TABLE\b[^(]*\bSELECT\b|` +
	`\b(DISCARD|IMPORT) TABLESPACE\b|\bXA (START|BEGIN)\b`)

// replaceLocks forwards a connection.
func replaceLocks(client net.Conn, server string, number int, message string) {
	to, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(client, to)
		_ = client.Close()
	}()
	header := make([]byte, 4)
	for {
		if _, err := io.ReadFull(client, header); err != nil {
			return
		}
		body := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
		if _, err := io.ReadFull(client, body); err != nil {
			return
		}
		if found := prohibited.Find(body); found != nil {
			body = fmt.Appendf(nil, "\x03SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = '%s'", number,
				strings.ReplaceAll(message, "FUNCTION", string(found)))
		}
		if _, err := to.Write(packet(header[3], body)); err != nil {
			return
		}
	}
}

// strictMode is the message of Percona XtraDB Cluster with pxc_strict_mode=ENFORCING, as users report it
// (https://github.com/matomo-org/matomo/issues/14919).
const strictMode = "Percona-XtraDB-Cluster prohibits use of FUNCTION with pxc_strict_mode = ENFORCING"

func TestBooksAreKeptOnAServerWithoutNamedLocks(t *testing.T) {
	s := dbtest.Shared(t, dbtest.MySQL)
	for number, message := range map[int]string{
		1105: strictMode, 1235: "This version does not yet support FUNCTION", 1305: "FUNCTION does not exist",
	} {
		b := newBooks(t, s)
		b.DSNFile = write(t, refuseLocks(t, b, number, message))
		applied, err := Migrate(t.Context(), &b.Options)
		if err != nil || len(applied) != 2 {
			t.Errorf("with error %d, %v was applied: %v", number, applied, err)
			continue
		}
		october(b)
		b.checkQuestions()
		checkTables(b)
	}
	// No process waits for another one there. They end with the same tables, if not at once.
	b := newBooks(t, s)
	b.DSNFile = write(t, refuseLocks(t, b, 1105, strictMode))
	migrateFourTimes(t, 5, &b.Options)
	october(b)
	b.checkQuestions()
	if applied, err := Migrate(t.Context(), &b.Options); err != nil || len(applied) > 0 {
		t.Errorf("afterwards, %v was applied (%v)", applied, err)
	}
}

func TestOnlyAServerWithoutNamedLocksIsMigratedWithoutOne(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("GET_LOCK"), false},
		{&mysql.MySQLError{Number: 1105, Message: strings.ReplaceAll(strictMode, "FUNCTION", "GET_LOCK")}, true},
		{&mysql.MySQLError{Number: 1105, Message: "Unknown error"}, false},
		{&mysql.MySQLError{Number: 1235, Message: "not yet supported"}, true},
		{fmt.Errorf("lock: %w", &mysql.MySQLError{Number: 1305, Message: "FUNCTION GET_LOCK does not exist"}), true},
		{&mysql.MySQLError{Number: 1290, Message: "read only"}, false},
	} {
		if got := hasNoLocks(tc.err); got != tc.want {
			t.Errorf("%v: got %v, want %v", tc.err, got, tc.want)
		}
	}
}

// An account may hold the lock for long. The migration ends with what to look for, also if a pooler gives
// both the same sessions of the server.
func TestALockOfAnotherProcessIsNamed(t *testing.T) {
	b := newBooks(t, dbtest.Shared(t, dbtest.PostgreSQL))
	b.DSNFile = write(t, b.database.PooledDSN(t, "transaction"))
	c, err := connect(&b.Options, nil, passTimeout)
	test.Must(t, err)
	defer func() { _ = c.Close() }()
	pool := c.DB
	held, other := &advisoryLock{wait: time.Minute}, &advisoryLock{wait: time.Millisecond}
	test.Must(t, held.Lock(t.Context(), pool))
	want := fmt.Sprintf("another process changes the tables of the books, or holds the advisory lock %d", lockID)
	if err := other.Lock(t.Context(), pool); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	test.Check(t, held.Unlock(t.Context(), pool))
	test.Check(t, other.Lock(t.Context(), pool))
	test.Check(t, other.Unlock(t.Context(), pool))
}
