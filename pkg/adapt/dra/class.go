package dra

import (
	"context"
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// verdict is what one class selects of one ResourceSlice.
type verdict struct {
	devices []string
	// problem is the first error; a device whose selectors fail is not selected.
	problem string
}

// evaluator runs the selectors of DeviceClasses with kube-scheduler's own CEL environment.
type evaluator struct{ compiled *cel.Cache }

func newEvaluator() evaluator {
	// With both features on, an expression means the same as with them off, where the API server accepts it at all.
	return evaluator{cel.NewCache(256, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})}
}

// key of a class's selectors. Renaming a class does not change it.
func selectorsKey(class *resourcev1.DeviceClass) string {
	var b strings.Builder
	for _, s := range class.Spec.Selectors {
		if s.CEL != nil {
			b.WriteString(s.CEL.Expression)
		} else {
			b.WriteString("\x01") // A kind of selector from the future.
		}
		b.WriteByte(0)
	}
	return b.String()
}

// compile reports an error that makes the class useless whatever the device.
func (e evaluator) compile(class *resourcev1.DeviceClass) string {
	for i, s := range class.Spec.Selectors {
		if s.CEL == nil {
			return fmt.Sprintf("selector %d is of a kind that Berth does not know", i)
		}
		if r := e.compiled.GetOrCompile(s.CEL.Expression); r.Error != nil {
			return fmt.Sprintf("selector %d: %s", i, oneLine(r.Error.Error()))
		}
	}
	return ""
}

func (e evaluator) slice(class *resourcev1.DeviceClass, s *resourcev1.ResourceSlice) verdict {
	var v verdict
	for i := range s.Spec.Devices {
		d := &s.Spec.Devices[i]
		selected, err := e.device(class, s.Spec.Driver, d)
		switch {
		case err != nil && v.problem == "":
			v.problem = fmt.Sprintf("device %s/%s: %s", s.Spec.Pool.Name, d.Name, oneLine(err.Error()))
		case selected:
			v.devices = append(v.devices, d.Name)
		}
	}
	return v
}

func (e evaluator) device(class *resourcev1.DeviceClass, driver string, d *resourcev1.Device) (bool, error) {
	for i, s := range class.Spec.Selectors {
		r := e.compiled.GetOrCompile(s.CEL.Expression)
		match, _, err := r.DeviceMatches(context.Background(), cel.Device{
			Driver: driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity,
		})
		if err != nil {
			return false, fmt.Errorf("selector %d: %w", i, cel.EnhanceRuntimeError(err))
		}
		if !match {
			return false, nil
		}
	}
	return true, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
