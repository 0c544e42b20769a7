package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/berth-dev/berth/config"
)

// Names of the policies; each has one binding of the same name.
const (
	ClaimStatus  = "berth-claim-status"
	HeldClaims   = "berth-held-claims"
	Claims       = "berth-claims"
	Reservations = "berth-reservations"
	Pin          = "berth-pin"
	Pods         = "berth-pods"
	JobKeys      = "berth-job-keys"
	JobSetKeys   = "berth-jobset-keys"
)

// Manifests returns the policies and bindings of config/policy as they are in the repository, for a controller that runs
// as system:serviceaccount:berth-system:berth-controller.
func Manifests() ([]*unstructured.Unstructured, error) {
	files, err := fs.Glob(config.Files, "policy/*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := config.Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			object := &unstructured.Unstructured{}
			err := decoder.Decode(&object.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}
