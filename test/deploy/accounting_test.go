package deploy

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "proffer.dev/proffer/api/config/v1alpha1"
	"proffer.dev/proffer/test"
	"proffer.dev/proffer/test/dbtest"
	"proffer.dev/proffer/test/process"
)

// The directories at which the component accounting mounts its ConfigMap and its Secret.
const (
	configurationDir = "/etc/proffer/configuration"
	databaseDir      = "/etc/proffer/database"
)

// exampleConfiguration returns the config.yaml that admins copy.
func exampleConfiguration(t *testing.T) string {
	t.Helper()
	return test.Read(t, config+"/components/accounting/config.yaml")
}

// replaceOnce replaces a text that must occur once.
func replaceOnce(t *testing.T, text, old, renewed string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q does not occur once in:\n%s", old, text)
	}
	return strings.Replace(text, old, renewed, 1)
}

// newConfiguration returns the configuration that an admin writes for an engine.
func newConfiguration(t *testing.T, engine dbtest.Engine) string {
	t.Helper()
	text := replaceOnce(t, exampleConfiguration(t), `clusterID: ""`, "clusterID: milan")
	return replaceOnce(t, text, "engine: PostgreSQL", "engine: "+string(engine))
}

// mounted writes files as the kubelet mounts them, and returns the arguments with their paths.
func mounted(t *testing.T, args []string, files map[string]string) []string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		content = strings.ReplaceAll(content, "/etc/proffer/", root+"/etc/proffer/")
		test.Must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o700))
		test.Must(t, os.WriteFile(filepath.Join(root, path), []byte(content), 0o600))
	}
	var adapted []string
	for _, arg := range args {
		adapted = append(adapted, strings.ReplaceAll(arg, "/etc/proffer/", root+"/etc/proffer/"))
	}
	return adapted
}

// runOnce runs the operator's program until it ends, and returns what it writes.
func runOnce(t *testing.T, args []string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, process.Program(t), args...).CombinedOutput()
	return string(out), err
}

func TestTheBooksAreKeptWithTheComponentAccounting(t *testing.T) {
	args := container(t, deployment(t, render(t, "accounting"))).Args
	dbtest.EachOwn(t, dbtest.Options{}, func(t *testing.T, server *dbtest.Server) {
		database := server.NewDatabase(t)
		o := start(t, mounted(t, args, map[string]string{
			configurationDir + "/config.yaml": newConfiguration(t, server.Engine()),
			databaseDir + "/dsn":              database.DSN() + "\n",
		}))
		o.AwaitReady(t)
		awaitBooks(t, database)
		o.requireAllowed(t)
	})
}

// awaitBooks waits until the books of this cluster are complete.
func awaitBooks(t *testing.T, database *dbtest.Database) {
	t.Helper()
	db := database.Open(t)
	test.Eventually(t, func() error {
		var name string
		err := db.QueryRowContext(t.Context(), "SELECT name FROM proffer_cluster WHERE seen_at IS NOT NULL").Scan(&name)
		if err == nil && name != "milan" {
			err = errors.New("the books are those of " + name)
		}
		return err
	})
}

func TestTLSToTheDatabaseIsConfiguredAsTheExampleShows(t *testing.T) {
	args := container(t, deployment(t, render(t, "accounting"))).Args
	server := dbtest.Start(t, dbtest.PostgreSQL, dbtest.Options{TLS: true})
	database := server.NewDatabase(t)
	ca, err := os.ReadFile(server.CAFile())
	test.Must(t, err)
	text := newConfiguration(t, server.Engine())
	for _, line := range []string{"    # tls:\n", "    #   caFile: "} {
		text = replaceOnce(t, text, line, strings.Replace(line, "# ", "", 1))
	}
	o := start(t, mounted(t, args, map[string]string{
		configurationDir + "/config.yaml": text, databaseDir + "/dsn": database.DSN(), databaseDir + "/ca.crt": string(ca),
	}))
	o.AwaitReady(t)
	awaitBooks(t, database)
}

func TestWithoutAClusterIDTheOperatorEndsWithALineThatSaysSo(t *testing.T) {
	args := mounted(t, container(t, deployment(t, render(t, "accounting"))).Args, map[string]string{
		configurationDir + "/config.yaml": exampleConfiguration(t),
	})
	out, err := runOnce(t, args)
	if err == nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, "set clusterID in the configuration file") {
		t.Errorf("the operator ends with %v:\n%s", err, out)
	}
}

// TestTheSecretOfTheDatabaseIsMountedForTheOperatorOnly checks the mode of the files, and that the
// files are where the configuration says.
func TestTheSecretOfTheDatabaseIsMountedForTheOperatorOnly(t *testing.T) {
	d := deployment(t, render(t, "accounting"))
	at := map[string]string{}
	for _, m := range container(t, d).VolumeMounts {
		if at[m.Name] = m.MountPath; !m.ReadOnly {
			t.Errorf("%s is mounted writable", m.Name)
		}
	}
	sources := map[string]corev1.VolumeSource{}
	for _, v := range d.Spec.Template.Spec.Volumes {
		sources[at[v.Name]] = v.VolumeSource
	}
	if s := sources[databaseDir].Secret; s == nil || s.SecretName != "proffer-database" || *s.DefaultMode != 0o440 {
		t.Errorf("%s is %+v, want the Secret proffer-database with mode 0440", databaseDir, s)
	}
	if m := sources[configurationDir].ConfigMap; m == nil || m.Name != "proffer-configuration" {
		t.Errorf("%s is %+v, want the ConfigMap proffer-configuration", configurationDir, m)
	}
	var c configv1alpha1.OperatorConfiguration
	test.Must(t, yaml.UnmarshalStrict([]byte(exampleConfiguration(t)), &c))
	if args := string(c.PluginConfig[0].Args); !strings.Contains(args, `"dsnFile":"`+databaseDir+`/dsn"`) {
		t.Errorf("the example configures %s, want a file in %s", args, databaseDir)
	}
}

// An edit of the file has to start new replicas: the name of the ConfigMap follows its content.
func TestAnEditOfTheConfigurationChangesThePods(t *testing.T) {
	mount := func(id string) string {
		dir := overlayWith(t, docsOverlay(t), "accounting")
		test.Must(t, os.WriteFile(dir+"/config.yaml", []byte(replaceOnce(t, exampleConfiguration(t), `clusterID: ""`, "clusterID: "+id)), 0o600))
		objects := renderAt(t, dir)
		for _, v := range deployment(t, objects).Spec.Template.Spec.Volumes {
			if v.ConfigMap != nil {
				find[corev1.ConfigMap](t, objects, "ConfigMap", v.ConfigMap.Name)
				return v.ConfigMap.Name
			}
		}
		t.Fatal("no ConfigMap is mounted")
		return ""
	}
	milan, paris := mount("milan"), mount("paris")
	if milan == paris || !strings.HasPrefix(milan, "proffer-configuration-") {
		t.Errorf("the ConfigMaps are %s and %s, want different hashes", milan, paris)
	}
}

// docsOverlay returns the lines of docs/how-to/record-in-a-database.md that generate the ConfigMap.
func docsOverlay(t *testing.T) string {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^configMapGenerator:\n(?:[- ].*\n)+`).FindString(installPage(t))
	if lines == "" {
		t.Fatal("docs/how-to/record-in-a-database.md generates no ConfigMap")
	}
	return lines
}

func installPage(t *testing.T) string {
	t.Helper()
	return test.Read(t, "../../docs/how-to/record-in-a-database.md")
}

// jobInTheDocs returns the Job of docs/how-to/record-in-a-database.md that creates the tables.
func jobInTheDocs(t *testing.T) *batchv1.Job {
	t.Helper()
	for _, block := range test.Blocks(installPage(t), "yaml") {
		if strings.Contains(block.Text, "kind: Job\n") {
			job := &batchv1.Job{}
			test.Must(t, yaml.UnmarshalStrict([]byte(block.Text), job))
			return job
		}
	}
	t.Fatal("docs/how-to/record-in-a-database.md has no Job")
	return nil
}

func TestThePodsOfTheJobInTheDocsAreAdmitted(t *testing.T) {
	job := jobInTheDocs(t)
	test.Must(t, cluster.client.Create(t.Context(), job))
	remove(t, job)
	pod := &corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta, Spec: job.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName = namespace, "migrate-"
	test.Must(t, cluster.client.Create(t.Context(), pod))
	remove(t, pod)
	// Services, the NetworkPolicy and commands of the docs select replicas by this label.
	if pod.Labels["app.kubernetes.io/name"] == "proffer" {
		t.Error("the pods of the Job are selected as replicas of the operator")
	}
}

// TestTheJobInTheDocsCreatesTheTables also runs the operator with an account that may not.
func TestTheJobInTheDocsCreatesTheTables(t *testing.T) {
	job := jobInTheDocs(t)
	if m := job.Spec.Template.Spec.Containers[0].VolumeMounts; len(m) != 1 || m[0].MountPath != databaseDir {
		t.Fatalf("the Job mounts %+v, want one Secret at %s", m, databaseDir)
	}
	args := container(t, deployment(t, render(t, "accounting"))).Args
	dbtest.EachOwn(t, dbtest.Options{}, func(t *testing.T, server *dbtest.Server) {
		database := server.NewDatabase(t)
		limited := database.LimitedDSN(t)
		text := replaceOnce(t, newConfiguration(t, server.Engine()), "  args:\n", "  args:\n    migrate: Manual\n")
		o := start(t, mounted(t, args, map[string]string{
			configurationDir + "/config.yaml": text, databaseDir + "/dsn": limited,
		}))
		o.AwaitReady(t)
		test.Eventually(t, func() error {
			if !strings.Contains(o.Log(), "run proffer migrate-database") {
				return errors.New("the operator does not ask for the tables")
			}
			return nil
		})
		out, err := runOnce(t, mounted(t, job.Spec.Template.Spec.Containers[0].Args, map[string]string{
			databaseDir + "/config.yaml": text, databaseDir + "/dsn": database.DSN(),
		}))
		if err != nil || !strings.HasSuffix(out, "the tables are up to date\n") {
			t.Fatalf("the Job ends with %v:\n%s", err, out)
		}
		awaitBooks(t, database)
	})
}

// TestTroubleshootingQuotesTheErrorsOfTheBooks compares the errors on the page that are the operator's
// own with its code. All others are those of the drivers and of the servers.
func TestTroubleshootingQuotesTheErrorsOfTheBooks(t *testing.T) {
	_, section, _ := strings.Cut(troubleshootingSections(t)[alerts], "### ProfferBooksBehind\n")
	section, _, _ = strings.Cut(section, "\n### ")
	files, err := filepath.Glob("../../internal/metasync/*.go")
	test.Must(t, err)
	var code strings.Builder
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, "_test.go") {
			code.Write(text)
		}
	}
	for _, quoted := range []string{
		"The books could not be written; will retry", "has no data source name", "run proffer migrate-database", "of a newer version of Proffer",
		"another process has raised the epoch", "the open rows are not those that this process wrote",
	} {
		if !strings.Contains(section, "`"+quoted+"`") || !strings.Contains(code.String(), quoted) {
			t.Errorf("the page or the code lacks %q", quoted)
		}
	}
}
