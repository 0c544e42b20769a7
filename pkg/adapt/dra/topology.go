package dra

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/berth-dev/berth/pkg/inventory"
	"github.com/berth-dev/berth/pkg/reason"
)

// topology resolves node names and selectors to hosts. It depends on names and labels of nodes only.
type topology struct {
	nodes      []*corev1.Node // in natural order of their names
	byName     map[string]*corev1.Node
	byHostname map[string]*corev1.Node
}

func newTopology(nodes []*corev1.Node) *topology {
	t := &topology{nodes: slices.Clone(nodes), byName: make(map[string]*corev1.Node, len(nodes)), byHostname: make(map[string]*corev1.Node, len(nodes))}
	slices.SortFunc(t.nodes, func(a, b *corev1.Node) int { return inventory.Natural(a.Name, b.Name) })
	for _, n := range t.nodes {
		t.byName[n.Name] = n
		// Of two nodes with one hostname the first stands for both; pkg/adapt/nodes blocks either.
		if h := n.Labels[corev1.LabelHostname]; h != "" && t.byHostname[h] == nil {
			t.byHostname[h] = n
		}
	}
	return t
}

// place is where a device stands.
type place struct {
	hosts   []string
	missing []inventory.Host
	byLabel bool
	// everywhere is true for devices that any node can reach.
	everywhere bool
	// problem is a selector that cannot be parsed.
	problem string
}

// resolve turns one of nodeName, nodeSelector and allNodes into hosts in rank order.
func (t *topology) resolve(nodeName *string, selector *corev1.NodeSelector, allNodes *bool, rankLabel string) place {
	var p place
	switch {
	case nodeName != nil && *nodeName != "":
		p.add(t.byName[*nodeName], *nodeName, *nodeName)
	case allNodes != nil && *allNodes:
		p.everywhere = true
	case selector != nil:
		if values, field, listed := listedHosts(selector); listed {
			for _, v := range values {
				if field {
					p.add(t.byName[v], v, v)
				} else {
					p.add(t.byHostname[v], t.nameFor(v), v)
				}
			}
			break
		}
		p.byLabel = true
		match, err := nodeaffinity.NewNodeSelector(selector)
		if err != nil {
			p.problem = err.Error()
			break
		}
		for _, n := range t.nodes {
			if match.Match(n) {
				p.hosts = append(p.hosts, n.Name)
			}
		}
	}
	t.rank(p.hosts, rankLabel)
	p.hosts = slices.Compact(p.hosts)
	return p
}

// nameFor is the name of a host that is known by its hostname label only. A Node of that very name with another label is
// a different host.
func (t *topology) nameFor(hostname string) string {
	if t.byName[hostname] != nil {
		return corev1.LabelHostname + "=" + hostname
	}
	return hostname
}

func (p *place) add(n *corev1.Node, name, hostname string) {
	if n != nil {
		p.hosts = append(p.hosts, n.Name)
		return
	}
	p.hosts = append(p.hosts, name)
	p.missing = append(p.missing, inventory.Host{
		Name: name, Hostname: hostname, Rank: name,
		Blocked: &reason.Evidence{Kind: reason.KindHost, Name: name, Code: reason.HostMissing, Detail: "does not exist"},
	})
}

// listedHosts recognises a selector that lists its hosts one by one, by the hostname label or by name. Those count even
// where no Node exists; any other selector says only which nodes match now.
func listedHosts(s *corev1.NodeSelector) (values []string, byName, listed bool) {
	if len(s.NodeSelectorTerms) != 1 {
		return nil, false, false
	}
	term := s.NodeSelectorTerms[0]
	switch {
	case len(term.MatchExpressions) == 1 && len(term.MatchFields) == 0:
		e := term.MatchExpressions[0]
		listed = e.Key == corev1.LabelHostname && e.Operator == corev1.NodeSelectorOpIn
		return e.Values, false, listed
	case len(term.MatchFields) == 1 && len(term.MatchExpressions) == 0:
		e := term.MatchFields[0]
		listed = e.Key == "metadata.name" && e.Operator == corev1.NodeSelectorOpIn
		return e.Values, true, listed
	}
	return nil, false, false
}

// rank orders hosts by the value of the rank label, and those that lack it behind the others; without a rank label, or
// with equal values, by name.
func (t *topology) rank(hosts []string, label string) {
	slices.SortFunc(hosts, func(a, b string) int {
		x, y := t.hostRank(a, label), t.hostRank(b, label)
		if x.ok != y.ok {
			if x.ok {
				return -1
			}
			return 1
		}
		return inventory.ByRank(x.host, y.host)
	})
}

type hostRank struct {
	host inventory.Host
	ok   bool
}

func (t *topology) hostRank(name, label string) hostRank {
	if label == "" {
		return hostRank{host: inventory.Host{Name: name, Rank: name}, ok: true}
	}
	if n := t.byName[name]; n != nil {
		if v, ok := n.Labels[label]; ok {
			return hostRank{host: inventory.Host{Name: name, Rank: v}, ok: true}
		}
	}
	return hostRank{host: inventory.Host{Name: name, Rank: name}}
}
