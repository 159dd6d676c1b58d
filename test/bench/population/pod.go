package population

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	namespaces = 50
	// podsPerApp is the number of pods of a workload.
	podsPerApp = 20
)

func namespaceName(i int) string { return fmt.Sprintf("team-%02d", i%namespaces) }

// podName returns the name of the i-th pod. Its end looks random, and is unique in the workload.
func podName(i int) string {
	app := i / podsPerApp
	return fmt.Sprintf("service-%04d-%s-%s%02x", app, digest("template", app)[:10], digest("pod", i)[:3], i%podsPerApp)
}

// pod returns the i-th pod with its status. A fifth of the pods belong to consumers.
func pod(i int, s Size) *corev1.Pod {
	app := i / podsPerApp
	name := fmt.Sprintf("service-%04d", app)
	template := digest("template", app)[:10]
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:      podName(i),
			Namespace: namespaceName(app),
			Labels: map[string]string{
				"app.kubernetes.io/name":     name,
				"app.kubernetes.io/instance": name + "-production",
				"app.kubernetes.io/version":  "1.27.3",
				"pod-template-hash":          template,
			},
			Annotations: map[string]string{
				"checksum/config":                   digest("config", app),
				"kubectl.kubernetes.io/restartedAt": "2026-03-04T10:12:31Z",
				"prometheus.io/port":                "9090",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + template, UID: uid("replicaset", app),
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: podSpec(i, name),
	}
	if s.Small {
		p.Labels, p.Annotations = map[string]string{"pod-template-hash": template}, nil
		c := p.Spec.Containers[0]
		p.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: c.Name, Image: c.Image, Resources: c.Resources}}}
	}
	p.Spec.NodeName = nodeName(i % s.Nodes)
	if i%5 == 4 && s.Consumers > 0 {
		p.Labels["offloading.liqo.io/origin"] = Consumer(i / 5 % s.Consumers)
		p.Labels["liqo.io/managed-by"] = "shadowpod"
		p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "offloading.liqo.io/v1beta1", "ShadowPod"
	}
	p.Status = podStatus(i, s, &p.Spec)
	return p
}

// finishedPod returns a pod of a finished job.
func finishedPod(i int, s Size) *corev1.Pod {
	p := pod(i, s)
	p.Name = fmt.Sprintf("job-%06d-%s", i, digest("job", i)[:5])
	p.Status.Phase = corev1.PodSucceeded
	for k := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[k]
		c.Ready, c.Started = false, new(false)
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: after(time.Hour), FinishedAt: after(2 * time.Hour), ContainerID: c.ContainerID,
		}}
	}
	return p
}

// shadowPod returns a pod that stands for one in another cluster.
func shadowPod(i int, s Size) *corev1.Pod {
	p := pod(i, s)
	p.Name = fmt.Sprintf("shadow-%06d-%s", i, digest("shadow", i)[:5])
	p.Labels["liqo.io/shadowPod"] = "true"
	p.Spec.NodeName = virtualNodeName(i % s.virtualNodes())
	return p
}

func uid(what string, i int) types.UID {
	d := digest(what, i)
	return types.UID(d[:8] + "-" + d[8:12] + "-4" + d[13:16] + "-8" + d[17:20] + "-" + d[20:32])
}

func podSpec(i int, app string) corev1.PodSpec {
	spec := corev1.PodSpec{
		Containers: []corev1.Container{
			mainContainer(i, app),
			sideContainer("metrics-exporter", "registry.example.com/platform/exporter:v0.17.2", 50, 64),
		},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Tolerations: []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
		Volumes:     volumes(app),
	}
	if i%8 == 0 {
		spec.Containers = append(spec.Containers,
			sideContainer("log-shipper", "registry.example.com/platform/shipper:v3.2.1", 20, 128))
	}
	if i%5 == 0 {
		migrate := sideContainer("migrate", "registry.example.com/platform/migrate:v1.9.0", 300, 256)
		migrate.Command, migrate.Args = []string{"/bin/migrate"}, []string{"--wait", "--timeout=5m", "up"}
		spec.InitContainers = append(spec.InitContainers, migrate)
	}
	if i%10 == 0 {
		proxy := sideContainer("mesh-proxy", "registry.example.com/platform/proxy:v1.30.4", 100, 128)
		proxy.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		spec.InitContainers = append(spec.InitContainers, proxy)
	}
	return spec
}

func mainContainer(i int, app string) corev1.Container {
	probe := func(path string, period int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}},
			PeriodSeconds: period,
		}
	}
	return corev1.Container{
		Name: app, Image: fmt.Sprintf("registry.example.com/%s/%s:v1.27.3", namespaceName(i/podsPerApp), app),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            []string{"serve", "--listen=:8080", "--config=/etc/service/config.yaml", "--log-format=json"},
		Env: []corev1.EnvVar{
			{Name: "ENVIRONMENT", Value: "production"},
			{Name: "LOG_LEVEL", Value: "info"},
			{Name: "DATABASE_HOST", Value: app + "-db.databases.svc.cluster.local"},
			{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "http://collector.observability.svc.cluster.local:4317"},
			{Name: "DATABASE_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: app + "-credentials"}, Key: "password",
			}}},
			{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		},
		Ports: []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
		},
		Resources:     requirements(250, 512, 1000, 512),
		LivenessProbe: probe("/healthz", 15), ReadinessProbe: probe("/readyz", 5),
		SecurityContext: restricted(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/service", ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"},
		},
	}
}

func sideContainer(name, image string, cpu, memory int64) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Env:       []corev1.EnvVar{{Name: "TARGET", Value: "localhost:8080"}},
		Resources: requirements(cpu, memory, 2*cpu, memory),
	}
}

// requirements returns requests and limits, in millicores and MiB.
func requirements(cpu, memory, cpuLimit, memoryLimit int64) corev1.ResourceRequirements {
	list := func(cpu, memory int64) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
		}
	}
	return corev1.ResourceRequirements{Requests: list(cpu, memory), Limits: list(cpuLimit, memoryLimit)}
}

func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// volumes returns the workload's own volumes. Admission adds the token's volume and its mounts.
func volumes(app string) []corev1.Volume {
	return []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"}, DefaultMode: new(int32(0o644)),
		}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			SizeLimit: new(resource.MustParse("1Gi")),
		}}},
	}
}
