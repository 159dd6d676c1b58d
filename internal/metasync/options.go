package metasync

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	config "proffer.dev/proffer/api/config/v1alpha1"
)

// Name is the name by which the configuration file switches the books on.
const Name = "MetaSync"

// The bounds of config.MetaSyncArgs.
const (
	defaultSampleSeconds = 60
	maxSampleSeconds     = 3600
	maxRetentionDays     = 36500
)

// Options are valid arguments.
type Options struct {
	// Engine is config.PostgreSQL or config.MySQL.
	Engine config.DatabaseEngine
	// DSNFile is the path of a file with the data source name. It is read again when it changes, as are
	// the files of TLS.
	DSNFile string
	TLS     config.DatabaseTLS
	// Sample is the least time for which a row stays, except those of grants.
	Sample time.Duration
	// Retention is the time for which rows that have ended are kept, 0 for ever.
	Retention time.Duration
	// Migrate creates the tables and brings them up to date.
	Migrate bool
	// ClusterID is the name of this cluster in the tables.
	ClusterID string
}

// NewOptions checks arguments, and fills in the defaults. The error says what to write.
func NewOptions(args config.MetaSyncArgs, clusterID string) (*Options, error) {
	sample := ptr.Deref(args.SampleSeconds, defaultSampleSeconds)
	switch {
	case clusterID == "":
		return nil, errors.New("set clusterID in the configuration file: it is the name of this cluster in the tables")
	case len(clusterID) > maxID:
		return nil, fmt.Errorf("clusterID has more than %d bytes", maxID)
	case !fitsColumn(maxID, clusterID):
		return nil, fmt.Errorf("clusterID is %q: write it without control characters, and without spaces at its ends",
			clusterID)
	case args.Engine != config.PostgreSQL && args.Engine != config.MySQL:
		return nil, fmt.Errorf("engine is %q: write %s, or %s, which is also for MariaDB",
			args.Engine, config.PostgreSQL, config.MySQL)
	case args.DSNFile == "":
		return nil, errors.New("set dsnFile to the path of a file with the data source name, " +
			"such as that of a mounted Secret")
	case CheckDSNFile(args.DSNFile) != nil:
		return nil, CheckDSNFile(args.DSNFile)
	case (args.TLS.CertFile == "") != (args.TLS.KeyFile == ""):
		return nil, errors.New("tls.certFile and tls.keyFile belong together: set both, or neither")
	case args.Migrate != "" && args.Migrate != config.MigrateAuto && args.Migrate != config.MigrateManual:
		return nil, fmt.Errorf("migrate is %q: write %s or %s", args.Migrate, config.MigrateAuto, config.MigrateManual)
	case sample < 1 || sample > maxSampleSeconds:
		return nil, fmt.Errorf("sampleSeconds is %d: write 1 to %d", sample, maxSampleSeconds)
	case args.RetentionDays < 0 || args.RetentionDays > maxRetentionDays:
		return nil, fmt.Errorf("retentionDays is %d: write 1 to %d, or 0 to keep everything",
			args.RetentionDays, maxRetentionDays)
	}
	return &Options{
		Engine: args.Engine, DSNFile: args.DSNFile, TLS: args.TLS, ClusterID: clusterID,
		Sample: time.Duration(sample) * time.Second, Retention: time.Duration(args.RetentionDays) * 24 * time.Hour,
		Migrate: cmp.Or(args.Migrate, config.MigrateAuto) == config.MigrateAuto,
	}, nil
}

// CheckDSNFile returns an error if what should be the path of a file is a data source name. The error of opening
// it would repeat the password.
func CheckDSNFile(path string) error {
	if !filepath.IsAbs(path) && strings.ContainsAny(path, "@=") {
		return errors.New("dsnFile is a data source name: write it into a file, and set dsnFile to the path of that file")
	}
	return nil
}
