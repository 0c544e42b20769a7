package fuzztest_test

import (
	"reflect"
	"testing"

	"github.com/berth-dev/berth/pkg/snapshot/fuzztest"
)

// TestBreak: no bytes change nothing, the same bytes change the same, and the original is left alone.
func TestBreak(t *testing.T) {
	site := fuzztest.Site()
	b := fuzztest.New(site)
	changed := 0
	for i, seed := range fuzztest.Seeds() {
		one, two := fuzztest.Copy(site), fuzztest.Copy(site)
		b.Break(seed, one)
		b.Break(seed, two)
		if !reflect.DeepEqual(one, two) {
			t.Errorf("seed %d breaks differently the second time", i)
		}
		if !reflect.DeepEqual(site, fuzztest.Site()) {
			t.Fatalf("seed %d changed the original", i)
		}
		if !reflect.DeepEqual(one, site) {
			changed++
		} else if len(seed) > 0 {
			t.Logf("seed %d changes nothing", i)
		}
	}
	if changed < len(fuzztest.Seeds())*3/4 {
		t.Errorf("only %d seeds change something", changed)
	}
	empty := fuzztest.Copy(site)
	b.Break(nil, empty)
	if !reflect.DeepEqual(empty, site) {
		t.Error("no bytes change something")
	}
}
