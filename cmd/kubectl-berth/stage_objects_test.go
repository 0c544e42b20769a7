package main

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/berth-dev/berth/pkg/adapt/dra/dratest"
)

func typed(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// nodes makes Nodes: nodes h0..h3 [cpu=32] [ready=false] [cordoned=true] [label:KEY=VALUE] [taint=KEY:EFFECT].
func (s *stage) nodes(args []string, _ string) string {
	names, values := wordsOf(args)
	for _, name := range names {
		n := dratest.Node(name)
		n.TypeMeta = typed("v1", "Node")
		for key, value := range values {
			label, isLabel := strings.CutPrefix(key, "label:")
			switch {
			case isLabel:
				n.Labels[label] = value
			case key == "cpu":
				n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse(value)
			case key == "ready":
				n.Status.Conditions[0].Status = corev1.ConditionFalse
			case key == "cordoned":
				n.Spec.Unschedulable = true
			case key == "taint":
				key, effect, _ := strings.Cut(value, ":")
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffect(effect)})
			default:
				s.Fatalf("nodes have no %s", key)
			}
		}
		s.put(n)
	}
	return strings.Join(args[:1], "") + fmt.Sprintf(": %d nodes", len(names))
}

// publish makes one ResourceSlice: publish NAME DRIVER/POOL [generation=1] [of=1] [node=h0], and a line for each entry:
//
//	counters SET AMOUNT NAMES…
//	DEVICE SHAPE [on HOSTS…] [where KEY OPERATOR VALUES…] [uses SET AMOUNT NAMES…] [tainted KEY:EFFECT]
//
// SHAPE is the device's attribute topology.
func (s *stage) publish(args []string, body string) string {
	driver, pool, _ := strings.Cut(args[1], "/")
	_, values := wordsOf(args[2:])
	slice := dratest.NewSlice(args[0], driver, pool)
	slice.TypeMeta = typed("resource.k8s.io/v1", "ResourceSlice")
	if g, given := values["generation"]; given {
		slice = slice.Generation(int64(number(g)))
	}
	if of, given := values["of"]; given {
		slice = slice.Of(int64(number(of)))
	}
	if node, given := values["node"]; given {
		slice = slice.Node(node)
	}
	for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if words[0] == "counters" {
			names, _ := wordsOf(words[3:])
			slice = slice.Counters(words[1], words[2], names...)
			continue
		}
		slice = slice.Device(s.device(words))
	}
	return fmt.Sprintf("ResourceSlice %s of pool %s, generation %d, 1 of %d: %s", args[0], args[1],
		slice.Spec.Pool.Generation, slice.Spec.Pool.ResourceSliceCount, s.put(slice.ResourceSlice))
}

func (s *stage) device(words []string) dratest.Device {
	keywords := []string{"on", "where", "uses", "tainted"}
	d := dratest.NewDevice(words[0], words[1])
	if hosts, _ := wordsOf(after(words, "on", keywords...)); len(hosts) > 0 {
		d = d.On(hosts...)
	}
	if where := after(words, "where", keywords...); len(where) > 1 {
		d = d.Matching(corev1.NodeSelectorRequirement{Key: where[0], Operator: corev1.NodeSelectorOperator(where[1]), Values: where[2:]})
	}
	if uses := after(words, "uses", keywords...); len(uses) > 2 {
		names, _ := wordsOf(uses[2:])
		d = d.Consumes(uses[0], uses[1], names...)
	}
	for _, taint := range after(words, "tainted", keywords...) {
		key, effect, _ := strings.Cut(taint, ":")
		d = d.Taint(key, "")
		d.Taints[len(d.Taints)-1].Effect = resourcev1.DeviceTaintEffect(effect)
	}
	return d
}

// classes makes a DeviceClass and a template of its name for each shape of a driver: classes DRIVER SHAPE…
func (s *stage) classes(args []string, _ string) string {
	for _, shape := range args[1:] {
		class := dratest.ByTopology(shape, args[0], shape)
		class.TypeMeta = typed("resource.k8s.io/v1", "DeviceClass")
		s.put(class)
	}
	return s.templates(args[1:], "")
}

// templates makes a ResourceClaimTemplate of its name for each class: templates CLASS… [count=1]. With a count the template
// is called after it, too: CLASS-2.
func (s *stage) templates(args []string, _ string) string {
	classes, values := wordsOf(args)
	var said []string
	for _, class := range classes {
		t := &resourcev1.ResourceClaimTemplate{TypeMeta: typed("resource.k8s.io/v1", "ResourceClaimTemplate"), ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: class}}
		t.Spec.Spec = *dratest.Request(class, 1)
		request := t.Spec.Spec.Devices.Requests[0].Exactly
		if n, given := values["count"]; given {
			t.Name += "-" + n
			request.Count = int64(number(n))
		}
		said = append(said, t.Name+" "+s.put(t))
	}
	return "ResourceClaimTemplate " + strings.Join(said, ", ")
}

// job makes a Job of Indexed pods that ask for a template each: job NAME pods=4 of=TEMPLATE [cpu=1] [slices=2] [tolerates=KEY].
func (s *stage) job(args []string, _ string) string {
	names, values := wordsOf(args)
	pods := int32(number(values["pods"]))
	j := &batchv1.Job{TypeMeta: typed("batch/v1", "Job"), ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: names[0]}}
	j.Spec = batchv1.JobSpec{
		Suspend: ptr.To(true), Parallelism: &pods, Completions: &pods, CompletionMode: ptr.To(batchv1.IndexedCompletion),
	}
	cpu := values["cpu"]
	if cpu == "" {
		cpu = "1"
	}
	spec := &j.Spec.Template.Spec
	spec.Containers = []corev1.Container{{Name: "worker", Image: "worker:1", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
	}}}
	spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "accelerator", ResourceClaimTemplateName: ptr.To(values["of"])}}
	if key := values["tolerates"]; key != "" {
		spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	}
	if k := values["slices"]; k != "" {
		j.Spec.Template.Annotations = map[string]string{"berth.dev/slices": k}
	}
	return fmt.Sprintf("Job %s: %s", names[0], s.put(j))
}

// pod makes a pod that runs on a host and asks for no device: pod NAMESPACE/NAME on=h0 cpu=30.
func (s *stage) pod(args []string, _ string) string {
	names, values := wordsOf(args)
	for _, full := range names {
		namespace, name, _ := strings.Cut(full, "/")
		p := &corev1.Pod{TypeMeta: typed("v1", "Pod"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		p.Spec.NodeName = values["on"]
		p.Spec.Containers = []corev1.Container{{Name: "c", Image: "c:1", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(values["cpu"])},
		}}}
		p.Status.Phase = corev1.PodRunning
		s.put(p)
	}
	return fmt.Sprintf("%d pods on %s", len(names), values["on"])
}

// claim makes a ResourceClaim that somebody other than Berth has allocated: claim NAMESPACE/NAME DRIVER/POOL/DEVICE [admin=true].
func (s *stage) claim(args []string, _ string) string {
	namespace, name, _ := strings.Cut(args[0], "/")
	_, values := wordsOf(args[2:])
	at := strings.Split(args[1], "/")
	result := dratest.Result(at[0], at[1], at[2])
	if values["admin"] == "true" {
		result.AdminAccess = ptr.To(true)
	}
	c := dratest.Claim(namespace, name, result)
	c.TypeMeta = typed("resource.k8s.io/v1", "ResourceClaim")
	c.Spec = *dratest.Request("whatever", 1)
	return fmt.Sprintf("ResourceClaim %s holds %s: %s", args[0], args[1], s.put(c))
}
