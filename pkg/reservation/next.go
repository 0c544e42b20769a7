package reservation

// Next says what follows from the view. The first rule that applies decides.
func Next(v View) Plan {
	if v.Target {
		return Plan{Rule: "target"}
	}
	if v.Phase != Releasing {
		return first(serving, v)
	}
	plan := first(releasing, v)
	// Strangers go besides whatever else is done: somebody who keeps making them must not hold up the release.
	if strangers := v.podsIn(func(p Pod) bool { return p.Stranger && !p.Seated && !p.Terminal && !p.Deleting }); len(strangers) > 0 {
		plan.Steps = append(plan.Steps, deletePods(strangers).Steps...)
	}
	return plan
}

func first(table []rule, v View) Plan {
	for _, r := range table {
		if plan, applies := r.decide(v); applies {
			plan.Rule = r.name
			return plan
		}
	}
	return Plan{Rule: "idle"}
}

// rule is one line of a table. decide returns false when the rule has nothing to say about the view.
type rule struct {
	name   string
	decide func(View) (Plan, bool)
}

// act is a plan of one step.
func act(do Act, names ...string) Plan { return Plan{Steps: []Step{{Do: do, Names: names}}} }

// claimsIn returns the names of the claims for which keep is true.
func (v View) claimsIn(keep func(Claim) bool) []string {
	var names []string
	for _, c := range v.Claims {
		if keep(c) {
			names = append(names, c.Name)
		}
	}
	return names
}

// podsIn returns the pods for which keep is true.
func (v View) podsIn(keep func(Pod) bool) []Pod {
	var pods []Pod
	for _, p := range v.Pods {
		if keep(p) {
			pods = append(pods, p)
		}
	}
	return pods
}
