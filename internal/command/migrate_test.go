package command

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"proffer.dev/proffer/test"
)

// noPath is the error for a data source name in the place of the path of its file.
const noPath = "dsnFile is a data source name: write it into a file, and set dsnFile to the path of that file"

func TestTheCommandLineOfMigrateDatabaseIsChecked(t *testing.T) {
	file := func(text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "config.yaml")
		test.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const head = "apiVersion: config.proffer.dev/v1alpha1\nkind: OperatorConfiguration\nclusterID: milan\n"
	const args = "pluginConfig:\n- name: MetaSync\n  args: {engine: PostgreSQL, dsnFile: /etc/proffer/database/dsn}\n"
	good, none := file(head+"reconcilers: [MetaSync]\n"+args), file(head)
	wrong := file(head + "reconcilers: [MetaSync]\n" + strings.Replace(args, "PostgreSQL", "Postgres", 1))
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "--config is missing: write the configuration file of the operator; see proffer migrate-database --help"},
		{[]string{"--confg=x"}, "there is no flag --confg; see proffer migrate-database --help"},
		{[]string{good}, " is not a flag: see proffer migrate-database --help"},
		{[]string{"--config=/none"}, "--config=/none: open /none: no such file or directory"},
		{[]string{"--config=" + none}, "reconcilers does not list MetaSync, so there is no database"},
		{[]string{"--config=" + wrong}, `MetaSync: engine is "Postgres": write PostgreSQL, or MySQL, which is also for MariaDB`},
		{[]string{"--config=" + good, "--dsn-file=proffer:s3cr3t@tcp(db:3306)/proffer"}, "--dsn-file: " + noPath},
	} {
		_, err := parseMigrate(tc.args, io.Discard, Program{})
		if err == nil || !strings.HasSuffix(err.Error(), tc.want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%v: got %v, want %s", tc.args, err, tc.want)
		}
	}
	for dsn, flags := range map[string][]string{
		"/etc/proffer/database/dsn": {"--config=" + good}, "owner-dsn": {"--config=" + good, "--dsn-file=owner-dsn"},
	} {
		if o, err := parseMigrate(flags, io.Discard, Program{}); err != nil || o.DSNFile != dsn || o.ClusterID != "milan" {
			t.Errorf("%v: got %+v, %v, want the file %s", flags, o, err, dsn)
		}
	}
}
