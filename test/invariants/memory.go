package invariants

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/api/v1alpha1"
)

// memory is what must be known for longer than histories are kept.
type memory struct {
	pinned map[types.UID]*pinnedClaim // by claim
	pods   map[types.UID]*podStory
	ranks  map[rankKey]map[types.UID]runner // pods that run
	nodes  map[string][]nodeTurn
	pools  map[poolKey]*pool
	// users are the claims that ever held a device of a pool.
	users map[poolKey]map[types.NamespacedName]bool

	naming    map[types.UID][]naming             // by Workload
	releasing map[types.UID]uint64               // by reservation: since which revision
	served    map[types.NamespacedName][]serving // by reservation name that a Ready check has named
	gone      map[types.UID]time.Time            // Workloads
	podGone   map[types.NamespacedName]time.Time // by reservation: its last pod
	born      map[types.UID]bool                 // Workloads that were created under our eyes
}

func newMemory() memory {
	return memory{
		pinned:    map[types.UID]*pinnedClaim{},
		pods:      map[types.UID]*podStory{},
		ranks:     map[rankKey]map[types.UID]runner{},
		nodes:     map[string][]nodeTurn{},
		pools:     map[poolKey]*pool{},
		users:     map[poolKey]map[types.NamespacedName]bool{},
		naming:    map[types.UID][]naming{},
		releasing: map[types.UID]uint64{},
		served:    map[types.NamespacedName][]serving{},
		gone:      map[types.UID]time.Time{},
		podGone:   map[types.NamespacedName]time.Time{},
		born:      map[types.UID]bool{},
	}
}

// pinnedClaim is a claim of Berth's. Once a claim was one it stays one, whatever is later taken off it.
type pinnedClaim struct {
	workload       string
	workloadUID    types.UID
	reservation    string
	reservationUID types.UID
	epoch          string
	// pods that ever stood in its reservedFor, by UID.
	pods map[types.UID]string
}

// podStory is how one pod fared.
type podStory struct {
	namespace, name string
	reservation     string // of its label
	controlled      bool   // it has a controller
	node            string // empty while it is not bound
	// over and gone are the earliest revisions at which it may have become so; 0: not yet.
	over, gone uint64
	obj        *corev1.Pod // its newest version; nil once it is gone
}

// nodeTurn is a change in what may run on a node.
type nodeTurn struct {
	since, rv uint64 // as in version
	alive     bool   // Ready, or certainly dead: gone or out of service. In any case nothing is hidden there.
	sound     bool   // Ready, and neither gone nor out of service: its pods end as they are told to
}

// naming is a reservation that a Ready check began to name.
type naming struct {
	rv          uint64
	reservation string
}

// serving is a reservation that was there under its name when a Ready check named it.
type serving struct {
	rv  uint64
	uid types.UID
}

// pin remembers a claim if it is Berth's, and the pods it serves.
func (m *memory) pin(c *resourcev1.ResourceClaim) *pinnedClaim {
	p := m.pinned[c.UID]
	if p == nil {
		uid := c.Annotations[v1alpha1.AnnotationWorkloadUID]
		reservation := c.Labels[v1alpha1.LabelReservation]
		if len(c.Name) < len(v1alpha1.ClaimNamePrefix) || c.Name[:len(v1alpha1.ClaimNamePrefix)] != v1alpha1.ClaimNamePrefix ||
			uid == "" || reservation == "" {
			return nil
		}
		p = &pinnedClaim{
			workload:       c.Annotations[v1alpha1.AnnotationWorkload],
			workloadUID:    types.UID(uid),
			reservation:    reservation,
			reservationUID: types.UID(c.Annotations[v1alpha1.AnnotationReservationUID]),
			epoch:          c.Annotations[v1alpha1.AnnotationEpoch],
			pods:           map[types.UID]string{},
		}
		m.pinned[c.UID] = p
	}
	for _, entry := range c.Status.ReservedFor {
		if entry.APIGroup == "" && entry.Resource == "pods" {
			p.pods[entry.UID] = entry.Name
		}
	}
	return p
}

// tell enters a version of a pod into its story.
func (m *memory) tell(pod *corev1.Pod, v version) *podStory {
	s := m.pods[pod.UID]
	if s == nil {
		s = &podStory{namespace: pod.Namespace, name: pod.Name}
		m.pods[pod.UID] = s
	}
	s.reservation = pod.Labels[v1alpha1.LabelReservation]
	for _, owner := range pod.OwnerReferences {
		s.controlled = s.controlled || owner.Controller != nil && *owner.Controller
	}
	s.node, s.obj = pod.Spec.NodeName, pod
	if s.over == 0 && over(pod) {
		s.over = v.since
	}
	if v.gone && s.gone == 0 {
		s.gone, s.obj = v.since, nil
		if s.reservation != "" {
			m.podGone[types.NamespacedName{Namespace: pod.Namespace, Name: s.reservation}] = v.seen
		}
	}
	return s
}

// turn enters a version of a node.
func (m *memory) turn(node *corev1.Node, v version) {
	ready, dead := false, v.gone
	for _, condition := range node.Status.Conditions {
		ready = ready || condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	}
	for _, taint := range node.Spec.Taints {
		dead = dead || taint.Key == corev1.TaintNodeOutOfService
	}
	now := nodeTurn{since: v.since, rv: v.rv, alive: ready || dead, sound: ready && !dead}
	turns := m.nodes[node.Name]
	if len(turns) > 0 {
		if last := turns[len(turns)-1]; last.alive == now.alive && last.sound == now.sound {
			return
		}
	}
	m.nodes[node.Name] = append(turns, now)
}

// aliveWithin reports whether a node was alive at any revision of an interval. One that had not been seen when it began
// counts as alive.
func (m *memory) aliveWithin(node string, from, to uint64) bool {
	turns := m.nodes[node]
	for i, turn := range turns {
		ends := i+1 < len(turns) && turns[i+1].rv <= from
		if turn.alive && turn.since <= to && !ends {
			return true
		}
	}
	return len(turns) == 0 || turns[0].since > from
}

// soundThroughout reports whether a node was certainly sound at all revisions of an interval.
func (m *memory) soundThroughout(node string, from, to uint64) bool {
	sound := false
	for _, turn := range m.nodes[node] {
		switch {
		case turn.rv <= from:
			sound = turn.sound
		case turn.since <= to && !turn.sound:
			return false
		}
	}
	return sound
}

// over reports whether a pod can run no more, though it may exist for long. The API server binds no pod that is being
// deleted.
func over(pod *corev1.Pod) bool {
	return terminal(pod) || (pod.DeletionTimestamp != nil && pod.Spec.NodeName == "")
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
