package accounting

import (
	"strings"
	"testing"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
	"proffer.dev/proffer/test/kubetest"
)

func TestTheBooksSurviveKillsOfTheOperatorAndOfTheDatabase(t *testing.T) {
	dbtest.EachOwn(t, dbtest.Options{}, func(t *testing.T, s *dbtest.Server) {
		w := newWorld(t, s)
		o := w.start()
		rome, oslo := w.ask("rome", "2"), w.ask("oslo", "4")
		w.awaitGranted(map[string]int64{"rome": 2000, "oslo": 4000})
		if n := w.count("SELECT COUNT(*) FROM proffer_grant_interval WHERE price = 0.021 AND currency = 'EUR' AND period = 'Hour'"); n != 2 {
			t.Errorf("%d rows have the price, want 2", n)
		}

		// The operator is killed, and what happened meanwhile is in the books of the next one.
		test.Must(t, o.Kill())
		w.askFor(rome, "3")
		kubetest.Remove(t, oslo)
		o = w.start()
		w.awaitGranted(map[string]int64{"rome": 3000})
		if n := w.count("SELECT COUNT(*) FROM proffer_gap WHERE reason = 'Stopped'"); n != 1 {
			t.Errorf("%d gaps for a kill, want 1", n)
		}

		// The database is killed. Slices are answered all the same, and the books catch up.
		s.Kill(t)
		w.askFor(rome, "1")
		w.awaitAnswer(rome, "1")
		test.Eventually(t, func() string {
			if !strings.Contains(o.Log(), "The books could not be written; will retry") {
				return "the operator does not say that the database is away"
			}
			return ""
		})
		w.askFor(rome, "5")
		w.awaitAnswer(rome, "5")
		s.Start(t)
		w.rows = w.database.Open(t)
		w.awaitGranted(map[string]int64{"rome": 5000})
		if n := w.count("SELECT COUNT(*) FROM proffer_gap WHERE reason = 'Unreachable'"); n != 1 {
			t.Errorf("%d gaps for a database that was killed, want 1", n)
		}
		if n := w.count("SELECT COUNT(*) FROM proffer_grant_interval WHERE granted = 1000"); n != 0 {
			t.Errorf("%d rows for what nobody could record", n)
		}

		// The network loses what is sent, and then the connection.
		w.database.Proxy.PauseAnswers()
		w.askFor(rome, "6")
		w.awaitAnswer(rome, "6")
		w.database.Proxy.Cut()
		w.database.Proxy.Resume()
		w.awaitGranted(map[string]int64{"rome": 6000})
		w.checkIntervals()
		w.checkSecret(o)
		test.Check(t, o.Alive())
	})
}

func TestALeaderThatWasStoppedAndGoesOnDoesNotWrite(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *dbtest.Server) {
		w := newWorld(t, s)
		old := w.start()
		rome := w.ask("rome", "2")
		w.awaitGranted(map[string]int64{"rome": 2000})
		test.Must(t, old.Suspend())
		w.askFor(rome, "3")
		next := w.start()
		w.awaitGranted(map[string]int64{"rome": 3000})
		test.Must(t, old.Resume())
		w.askFor(rome, "4")
		w.awaitGranted(map[string]int64{"rome": 4000})
		if n := w.count("SELECT epoch FROM proffer_cluster"); n != 2 {
			t.Errorf("the epoch is %d after two leaders, want 2", n)
		}
		w.checkIntervals()
		test.Check(t, next.Alive())
	})
}
