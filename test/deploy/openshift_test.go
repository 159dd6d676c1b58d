package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"proffer.dev/proffer/test"
)

// The annotations of a namespace of OpenShift allow these users, and the first of them as group.
const firstID, lastID = 1000660000, 1000669999

// sccVolumes are the kinds of volumes that restricted-v2 allows.
var sccVolumes = []string{
	"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
}

// admitRestrictedV2 does what the SecurityContextConstraints restricted-v2 of OpenShift do: they set what a
// pod leaves open, and refuse it for the problems returned. The rules are those of the object restricted-v2 in
// github.com/openshift/cluster-kube-apiserver-operator.
func admitRestrictedV2(t *testing.T, pod *corev1.PodSpec) (problems []string) {
	t.Helper()
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		refuse("a namespace of the host")
	}
	for _, v := range pod.Volumes {
		text, err := yaml.Marshal(v.VolumeSource)
		test.Must(t, err)
		if kind, _, _ := strings.Cut(string(text), ":"); !slices.Contains(sccVolumes, kind) {
			refuse("volume %s of kind %s", v.Name, kind)
		}
	}
	if pod.SecurityContext == nil {
		pod.SecurityContext = &corev1.PodSecurityContext{}
	}
	c := pod.SecurityContext
	if c.FSGroup == nil {
		c.FSGroup = new(int64(firstID)) // MustRunAs, with the groups of the namespace.
	}
	if *c.FSGroup != firstID {
		refuse("fsGroup %d", *c.FSGroup)
	}
	if len(c.Sysctls) > 0 {
		refuse("sysctls")
	}
	problems = append(problems, refusedIDs("the pod", c.RunAsUser, c.SELinuxOptions, c.SeccompProfile)...)
	for _, list := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			problems = append(problems, admitContainer(c, &list[i])...)
		}
	}
	return problems
}

// refusedIDs are the rules that hold for a pod and for each container: MustRunAsRange, MustRunAs with the
// labels of the namespace, and runtime/default.
func refusedIDs(
	who string, user *int64, selinux *corev1.SELinuxOptions, seccomp *corev1.SeccompProfile,
) (problems []string) {
	if user != nil && (*user < firstID || *user > lastID) {
		problems = append(problems, fmt.Sprintf("%s runs as user %d", who, *user))
	}
	if selinux != nil {
		problems = append(problems, who+" has SELinux options")
	}
	if seccomp != nil && seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault {
		problems = append(problems, fmt.Sprintf("%s has the seccomp profile %s", who, seccomp.Type))
	}
	return problems
}

func admitContainer(pod *corev1.PodSecurityContext, c *corev1.Container) (problems []string) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	s := c.SecurityContext
	refuse := func(what string) { problems = append(problems, c.Name+": "+what) }
	problems = refusedIDs(c.Name, s.RunAsUser, s.SELinuxOptions, s.SeccompProfile)
	if s.RunAsUser == nil && pod.RunAsUser == nil {
		s.RunAsUser = new(int64(firstID))
	}
	if s.AllowPrivilegeEscalation == nil {
		s.AllowPrivilegeEscalation = new(false)
	}
	if s.Privileged != nil && *s.Privileged || *s.AllowPrivilegeEscalation {
		refuse("privileges")
	}
	if s.Capabilities == nil {
		s.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	for _, added := range s.Capabilities.Add {
		if added != "NET_BIND_SERVICE" {
			refuse("capability " + string(added))
		}
	}
	if !slices.Contains(s.Capabilities.Drop, "ALL") {
		s.Capabilities.Drop = append(s.Capabilities.Drop, "ALL")
	}
	for _, p := range c.Ports {
		if p.HostPort != 0 {
			refuse("a port of the host")
		}
	}
	return problems
}

// requireOpenShift requires that restricted-v2 starts the pod, that its user is the platform's, and that this user
// can read what the pod mounts.
func requireOpenShift(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	if problems := admitRestrictedV2(t, pod); len(problems) > 0 {
		t.Errorf("restricted-v2 refuses %s", strings.Join(problems, "; "))
	}
	if user := pod.Containers[0].SecurityContext.RunAsUser; user == nil || *user != firstID {
		t.Errorf("the container runs as %v, want %d", user, firstID)
	}
	for _, v := range pod.Volumes {
		if v.Secret != nil && v.Secret.DefaultMode != nil && *v.Secret.DefaultMode&0o040 == 0 {
			t.Errorf("volume %s is not readable by fsGroup", v.Name)
		}
	}
}

func TestRestrictedV2StartsThePodsOnlyWithTheComponentOpenshift(t *testing.T) {
	all := slices.DeleteFunc(components(t), func(c string) bool {
		return c == "openshift" || c == "kubernetes-1.25-to-1.29"
	})
	sets := [][]string{nil, all}
	for _, c := range all {
		sets = append(sets, []string{c})
	}
	for _, set := range sets {
		t.Run(strings.Join(set, "+"), func(t *testing.T) {
			pods := func(components ...string) (specs []*corev1.PodSpec) {
				for _, u := range render(t, components...) {
					switch u.GetKind() {
					case "Deployment":
						specs = append(specs, &deployment(t, rendered{u}).Spec.Template.Spec)
					case "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob", "Pod":
						t.Errorf("%s %s is not tested here", u.GetKind(), u.GetName())
					}
				}
				return specs
			}
			requireRefusedForIDs(t, pods(set...)[0])
			for _, pod := range pods(append(slices.Clone(set), "openshift")...) {
				requireOpenShift(t, pod)
			}
		})
	}
}

// requireRefusedForIDs requires that restricted-v2 refuses a pod, and only for its user and its group.
func requireRefusedForIDs(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	if problems := admitRestrictedV2(t, pod); !slices.Equal(problems, []string{"fsGroup 65532", "the pod runs as user 65532"}) {
		t.Errorf("restricted-v2 refuses %q, want only the user and the group", problems)
	}
}

func TestRestrictedV2StartsTheExampleWithTheComponent(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	test.Must(t, err)
	root, err := filepath.Abs("../..")
	test.Must(t, err)
	up, err := filepath.Rel(dir, root)
	test.Must(t, err)
	text := fmt.Sprintf("resources: [%[1]s/examples/custom-operator/deploy]\ncomponents: [%[1]s/config/components/openshift]\n", up)
	test.Must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	requireOpenShift(t, &deployment(t, renderAt(t, dir)).Spec.Template.Spec)
}

var (
	jobBlock = regexp.MustCompile("(?ms)^```yaml\n(# migrate.yaml\n.*?)^```$")
	idLines  = regexp.MustCompile(`(?m)^ *(runAsUser|runAsGroup|fsGroup): \d+\n`)
)

func TestRestrictedV2StartsTheJobOfTheDocsWithoutItsIDs(t *testing.T) {
	page := test.Read(t, "../../docs/how-to/record-in-a-database.md")
	block := jobBlock.FindStringSubmatch(page)
	if block == nil {
		t.Fatal("docs/how-to/record-in-a-database.md has no migrate.yaml")
	}
	jobOf := func(text string) *corev1.PodSpec {
		job := &batchv1.Job{}
		test.Must(t, yaml.UnmarshalStrict([]byte(text), job))
		return &job.Spec.Template.Spec
	}
	requireRefusedForIDs(t, jobOf(block[1]))
	requireOpenShift(t, jobOf(idLines.ReplaceAllString(block[1], "")))
}
