package metasync

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	config "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/internal/kube"
	"proffer.dev/proffer/test"
)

// passAgainst makes one pass with a server, and returns how it ended, what was logged and how much memory was
// allocated.
func passAgainst(t *testing.T, engine config.DatabaseEngine, dsn string) (lines string, allocated uint64, err error) {
	t.Helper()
	var log logged
	b := New(Config{Options: Options{Engine: engine, DSNFile: write(t, dsn), ClusterID: "milan", Sample: time.Minute}, Holding: leads, Log: log.logger()})
	b.timeout = 20 * time.Second
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := newSession(b)
	defer s.close()
	_, err = b.pass(t.Context(), s, granting(1))
	runtime.ReadMemStats(&after)
	return strings.Join(log.lines, "\n"), after.TotalAlloc - before.TotalAlloc, err
}

// packet is a packet of MySQL.
func packet(sequence byte, body []byte) []byte {
	return append([]byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), sequence}, body...)
}

func TestAServerThatAnswersWithoutEndTakesNoMemory(t *testing.T) {
	full := bytes.Repeat([]byte{10}, 1<<24-1)
	for name, tc := range map[string]struct {
		engine config.DatabaseEngine
		serve  func(net.Conn)
		dsn    func(address string) string
	}{
		"a message of a gigabyte": {config.PostgreSQL, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1024))
			_, _ = c.Write(binary.BigEndian.AppendUint32([]byte{'E'}, 1<<30-1))
			_, _ = c.Read(make([]byte, 1024))
		}, postgres},
		"messages without end": {config.PostgreSQL, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1024))
			notice := append(binary.BigEndian.AppendUint32([]byte{'S'}, 4+1<<20), bytes.Repeat([]byte("a\x00b\x00"), 1<<18)...)
			for err := error(nil); err == nil; {
				_, err = c.Write(notice)
			}
		}, postgres},
		"a packet without end": {config.MySQL, func(c net.Conn) {
			for sequence := byte(0); ; sequence++ {
				if _, err := c.Write(packet(sequence, full)); err != nil {
					return
				}
			}
		}, mysqlOf},
	} {
		t.Run(name, func(t *testing.T) {
			_, allocated, err := passAgainst(t, tc.engine, tc.dsn(test.Serve(t, tc.serve)))
			if err == nil {
				t.Fatal("the server is believed")
			}
			if allocated > 6*maxAnswer {
				t.Errorf("%d MiB were allocated", allocated>>20)
			}
		})
	}
}

func postgres(address string) string {
	return "postgres://proffer:s3cr3t@" + address + "/proffer?sslmode=disable"
}

func mysqlOf(address string) string { return "proffer:s3cr3t@tcp(" + address + ")/proffer" }

func TestAnErrorShowsNeitherThePasswordNorWhereItWas(t *testing.T) {
	for secret, text := range map[string]string{
		"x": "cannot execute", "p q/ü": "no host in postgres://p+q%2F%C3%BC@db", `a"b`: `the server says "a\"b"`,
		"p/q": "no host in postgres://u:p%2Fq@db", "a b;c": "no host in postgres://u:a%20b;c@db", "long and random": "a long and random number",
	} {
		c := &databasePool{secret: secret}
		if err := c.hide(errors.New(text)); err == nil || !strings.HasPrefix(err.Error(), "an error that is left out") {
			t.Errorf("with the password %q, %q is shown as %v", secret, text, err)
		}
	}
	c := &databasePool{secret: "s3cr3t"}
	plain := errors.New("connection refused")
	if err := c.hide(plain); !errors.Is(err, plain) {
		t.Errorf("an error without the password is shown as %v", err)
	}
	if err := c.hide(errors.New(strings.Repeat("a", 100*kube.MaxMessage))); len(err.Error()) > 3*kube.MaxMessage {
		t.Errorf("an error has %d bytes", len(err.Error()))
	}
}

func TestALongErrorOfTheServerIsCutAndHasNoPassword(t *testing.T) {
	text := strings.Repeat("s3cr3t ", 100_000)
	for _, tc := range []struct {
		engine config.DatabaseEngine
		serve  func(net.Conn)
		dsn    func(address string) string
	}{
		{config.PostgreSQL, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1024))
			body := []byte("SFATAL\x00C28P01\x00M" + text + "\x00\x00")
			_, _ = c.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(body))), body...))
		}, postgres},
		{config.MySQL, func(c net.Conn) {
			_, _ = c.Write(packet(0, []byte("\xff\x15\x04#28000"+text)))
		}, mysqlOf},
	} {
		lines, _, err := passAgainst(t, tc.engine, tc.dsn(test.Serve(t, tc.serve)))
		if err == nil || !strings.Contains(err.Error(), "contains the password") || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %d bytes: %.200v", tc.engine, len(err.Error()), err)
		}
		if strings.Contains(lines, "s3cr3t") || lines == "" {
			t.Errorf("%s: the log is %.200s", tc.engine, lines)
		}
	}
}

// A server that sends a byte now and then keeps within the deadline of each read.
func TestAnAnswerEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		a, err := boundAnswers(time.Minute)(client, nil)
		test.Must(t, err)
		var serving sync.WaitGroup
		serving.Go(func() {
			buffer := make([]byte, 16)
			if _, err := server.Read(buffer); err != nil {
				return
			}
			for err := error(nil); err == nil; time.Sleep(20 * time.Second) { //nolint:forbidigo // the clock of the bubble
				_, err = server.Write(buffer[:1])
			}
		})
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of the bubble
		if _, err := a.Write([]byte("query")); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for err == nil {
			_, err = a.Read(make([]byte, 16))
		}
		if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took > 2*time.Minute {
			t.Errorf("the answer ended after %v with %v, want %v after a minute", took, err, os.ErrDeadlineExceeded)
		}
		_ = client.Close()
		serving.Wait()
	})
}

func TestARefusedConnectionIsNotTakenForMissingTables(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	address := l.Addr().String()
	_ = l.Close()
	for engine, dsn := range map[config.DatabaseEngine]string{config.PostgreSQL: postgres(address), config.MySQL: mysqlOf(address)} {
		b := New(Config{Options: Options{Engine: engine, DSNFile: write(t, dsn), ClusterID: "milan"}, Holding: leads, Log: logr.Discard()})
		s := newSession(b)
		_, err := b.pass(t.Context(), s, granting(1))
		s.close()
		if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "missing") {
			t.Errorf("%s: %v", engine, err)
		}
	}
}
