package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"syscall"
	"testing"
	"time"

	"proffer.dev/proffer/test"
)

// client returns a database with a table, and a client with one open connection through the proxy.
func client(t *testing.T, s *Server) (*Database, *sql.DB) {
	t.Helper()
	d := s.NewDatabase(t)
	db := connect(t, s.Engine(), d.DSN())
	execute(t, db, "CREATE TABLE a (id bigint PRIMARY KEY)")
	return d, db
}

func TestCutBreaksAnOpenConnection(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		d, db := client(t, s)
		c, err := db.Conn(t.Context())
		test.Must(t, err)
		defer func() { _ = c.Close() }()
		d.Proxy.Cut()
		if _, err := c.ExecContext(t.Context(), "INSERT INTO a VALUES (1)"); err == nil {
			t.Error("the connection still works")
		}
		test.Eventually(t, func() error { return connect(t, s.Engine(), d.DSN()).PingContext(t.Context()) })
	})
}

func TestTheProxyOfADatabaseIsItsOwn(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		_, db := client(t, s)
		other, _ := client(t, s)
		c, err := db.Conn(t.Context())
		test.Must(t, err)
		defer func() { _ = c.Close() }()
		other.Proxy.Cut()
		if _, err := c.ExecContext(t.Context(), "INSERT INTO a VALUES (1)"); err != nil {
			t.Error(err)
		}
	})
}

func TestAPausedQueryHangsUntilItsContextEnds(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		d, db := client(t, s)
		d.Proxy.Pause()
		const patience = 200 * time.Millisecond
		for name, db := range map[string]*sql.DB{"open": db, "new": connect(t, s.Engine(), d.DSN())} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			began := time.Now()
			_, err := db.ExecContext(ctx, "INSERT INTO a VALUES (1)")
			cancel()
			if took := time.Since(began); err == nil || took < patience {
				t.Errorf("on the %s connection the query returned %v after %v, want an error after %v", name, err, took, patience)
			}
		}
		if n := count(t, d.Open(t)); n != 0 {
			t.Errorf("the server got %d rows, want none", n)
		}
	})
}

func TestThePausedAnswerOfACommitLeavesItsEffect(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		d, db := client(t, s)
		tx, err := db.BeginTx(t.Context(), nil)
		test.Must(t, err)
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO a VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		d.Proxy.PauseAnswers()
		committed := make(chan error, 1)
		go func() { committed <- tx.Commit() }()
		look := d.Open(t)
		test.Eventually(t, func() error {
			if count(t, look) == 0 {
				return errors.New("the server has not committed")
			}
			return nil
		})
		select {
		case err := <-committed:
			t.Fatalf("Commit returned %v before its answer", err)
		default:
		}
		d.Proxy.Cut()
		if err := <-committed; err == nil {
			t.Error("Commit returned nil without its answer")
		}
	})
}

func TestRefusedConnectionsAreRefusedUntilAccept(t *testing.T) {
	Each(t, func(t *testing.T, s *Server) {
		d, db := client(t, s)
		d.Proxy.Refuse(t)
		if err := connect(t, s.Engine(), d.DSN()).PingContext(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, want connection refused", err)
		}
		test.Eventually(t, func() error {
			if n := d.Proxy.Connections(); n != 0 {
				return errors.New("there still are connections")
			}
			return nil
		})
		if n := count(t, d.Open(t)); n != 0 {
			t.Errorf("past the proxy there are %d rows, want 0", n)
		}
		d.Proxy.Accept(t)
		test.Eventually(t, func() error { return db.PingContext(t.Context()) })
	})
}
