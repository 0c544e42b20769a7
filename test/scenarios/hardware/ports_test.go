package hardware

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/berth-dev/berth/pkg/api/config/v1alpha1"
	"github.com/berth-dev/berth/test/scene"
)

// TestPortTaken: the scheduler finds no place for a rank for a reason that Berth does not judge. The gang does not hold its
// slice for ever: it is sent back with the scheduler's words, and runs where the port is free.
func TestPortTaken(t *testing.T) {
	s := begin(t)
	standard(s, "ports")
	st := s.Follow()
	run(s, scene.RunOptions{Configure: func(config *configv1alpha1.BerthConfiguration) {
		config.Seating.Timeout = metav1.Duration{Duration: 8 * time.Second}
	}})
	port := []corev1.ContainerPort{{ContainerPort: 29500, HostPort: 29500}}
	stranger := fillWith(s, "ports-2", func(p *corev1.Pod) { p.Spec.Containers[0].Ports = port })

	job := s.Submit(scene.Gang("gang", quad, 4, func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Ports = port }))
	st.Await(job, "GangReserved False NotSeated: the scheduler finds no place for rank 2 on its host ports-2: "+
		"1 node(s) didn't have free ports for the requested pod ports")
	clearOut(s, stranger)
	s.AwaitSeated(job)
	s.Finish(job)
	s.AwaitNoTrace()
}
