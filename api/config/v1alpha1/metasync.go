package v1alpha1

// MetaSyncArgs are the arguments of the reconciler MetaSync, which records in a database what
// consumers were offered, granted and used.
type MetaSyncArgs struct {
	// Engine is the kind of the database.
	Engine DatabaseEngine `json:"engine"`
	// DSNFile is the path of a file with the data source name: a connection string of PostgreSQL, such
	// as postgres://proffer:PASSWORD@db.example.com:5432/proffer, or one of Go's driver for MySQL, such
	// as proffer:PASSWORD@tcp(db.example.com:3306)/proffer. The file is read again when it changes.
	DSNFile string `json:"dsnFile"`
	// TLS encrypts the connection. It replaces what the data source name says of TLS.
	TLS DatabaseTLS `json:"tls,omitzero"`
	// SampleSeconds is the minimum time for which a row of anything but a grant stays, in seconds. 1 to
	// 3600. Default: 60.
	SampleSeconds *int `json:"sampleSeconds,omitempty"`
	// RetentionDays is the number of days for which rows that have ended are kept. Default: 0, which
	// keeps everything.
	RetentionDays int `json:"retentionDays,omitempty"`
	// Migrate selects who creates the tables and updates them. Default: Auto.
	Migrate MigrateMode `json:"migrate,omitempty"`
}

// DatabaseEngine is a kind of database.
type DatabaseEngine string

// The engines.
const (
	// PostgreSQL is PostgreSQL 13 and newer.
	PostgreSQL DatabaseEngine = "PostgreSQL"
	// MySQL is MySQL 8.0.16 and newer, and MariaDB 10.6 and newer.
	MySQL DatabaseEngine = "MySQL"
)

// DatabaseTLS configures how the connection to a database is encrypted. Each file is read again when
// it changes.
type DatabaseTLS struct {
	// CAFile is the path of the certificates, in PEM, of the authorities that may have signed the
	// server's. With it the connection is encrypted, and the certificate and the name of the server are
	// checked.
	CAFile string `json:"caFile,omitempty"`
	// CertFile and KeyFile are the paths of a client certificate and its key, in PEM.
	CertFile string `json:"certFile,omitempty"`
	KeyFile  string `json:"keyFile,omitempty"`
	// ServerName is the name that the server's certificate must have. Default: the host in the data
	// source name.
	ServerName string `json:"serverName,omitempty"`
}

// MigrateMode selects who changes the tables of a database.
type MigrateMode string

// The modes.
const (
	// MigrateAuto: the operator does, which needs the right to create tables.
	MigrateAuto MigrateMode = "Auto"
	// MigrateManual: an admin does, by `proffer migrate-database`.
	MigrateManual MigrateMode = "Manual"
)
