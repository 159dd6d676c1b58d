package metasync

import (
	"errors"
	"strings"
	"testing"
	"time"

	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
)

// Whatever somebody does to the tables by hand, passes repair it as soon as they meet it, and the log
// says when the books are written again.
func TestTheBooksRecoverFromWhatIsDoneByHand(t *testing.T) {
	const drop = "DROP VIEW proffer_offered_daily, proffer_granted_daily, proffer_used_daily; " +
		"DROP TABLE proffer_schema_version, proffer_day, proffer_gap, proffer_consumer, proffer_policy_version, proffer_offer_interval, " +
		"proffer_grant_interval, proffer_usage_interval, proffer_pool_interval; DROP TABLE proffer_cluster"
	for name, statements := range map[string]string{
		"an open row is deleted": "DELETE FROM proffer_grant_interval WHERE valid_to IS NULL",
		"an open row is ended":   "UPDATE proffer_grant_interval SET valid_to = valid_from",
		"an open row is added": "INSERT INTO proffer_offer_interval (cluster_id, consumer, class, resource, policy, amount, valid_from) " +
			"SELECT id, 'rome', 'gold', 'cpu', 'gold', 7, written_at FROM proffer_cluster",
		"everything is dropped": drop,
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, s *dbtest.Server) {
				b := newBooks(t, s)
				var log logged
				b.Log = log.logger()
				session := b.session()
				b.must(session, granting(1000))
				b.clock.pass(time.Minute)
				for statement := range strings.SplitSeq(statements, ";") {
					if _, err := b.database.Open(t).ExecContext(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				}
				next := granting(2000).published(nil)
				next.offers[offerKey{"rome", "gold", "cpu"}] = offered{"gold", 9}
				var err error
				for range 4 {
					if _, err = b.pass(t.Context(), session, of(next, nil)); err == nil {
						break
					}
					if errors.Is(err, errFenced) && statements != drop {
						t.Fatal(err)
					}
				}
				test.Must(t, err)
				b.clock.pass(2 * time.Minute)
				b.must(session, of(next, nil))
				open, err := b.openRows(t.Context())
				test.Must(t, err)
				if len(open.grants.open) != 1 || open.grants.open[grantKey{"u1", "cpu"}].value.granted != 2000 ||
					len(open.offers.open) != 1 || open.offers.open[offerKey{"rome", "gold", "cpu"}].value.amount != 9 {
					t.Errorf("open rows: %v, %v", open.grants.open, open.offers.open)
				}
				if lines := strings.Join(log.lines, "\n"); !strings.Contains(lines, "The books could not be written; will retry") ||
					!strings.Contains(log.lines[len(log.lines)-1], "The books are written again") {
					t.Errorf("the log is %s", lines)
				}
			})
		})
	}
}
