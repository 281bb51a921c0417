package zero

import (
	"fmt"
	"sync"

	"example.org/libzero/bindings/go/internal/czero"
)

// Version returns the release of the library that was loaded, for example "0.1.0".
func Version() string { return czero.Zero_version() }

// ABIVersion returns the ABI of the library that was loaded.
func ABIVersion() (major, minor int) { return splitABI(czero.Zero_abi_version()) }

// Check returns an error when the library that was loaded has another ABI than this package was made for. Every constructor calls it.
func Check() error {
	abi.once.Do(func() { abi.err = checkABI(czero.Zero_abi_version()) })
	return abi.err
}

var abi struct {
	once sync.Once
	err  error
}

func splitABI(version int64) (major, minor int) { return int(version >> 16), int(version & 0xffff) }

func checkABI(version int64) error {
	major, minor := splitABI(version)
	if major == int(czero.ZERO_ABI_MAJOR) && minor >= int(czero.ZERO_ABI_MINOR) {
		return nil
	}
	return &Error{Code: ErrUnsupported, Text: fmt.Sprintf(
		"the libzero that was loaded has ABI %d.%d, but this package needs %d.%d or a later %d.x: install that, or use the package of the loaded release",
		major, minor, czero.ZERO_ABI_MAJOR, czero.ZERO_ABI_MINOR, czero.ZERO_ABI_MAJOR)}
}

// Feature is something that a build of libzero on a machine can do or not.
type Feature int32

// Features.
const (
	FeatureLocal = Feature(czero.ZERO_FEATURE_LOCAL) // groups of goroutines and processes of one host
	FeatureMPI   = Feature(czero.ZERO_FEATURE_MPI)   // CreateMPI
	FeatureCUDA  = Feature(czero.ZERO_FEATURE_CUDA)  // KeyDevice
	FeatureNCCL  = Feature(czero.ZERO_FEATURE_NCCL)  // KeyNCCL
)

// String returns its name, for example "mpi".
func (f Feature) String() string { return nameOf("ZERO_FEATURE_", int64(f)) }

// HasFeature tells whether the library that was loaded has a feature on this machine.
func HasFeature(feature Feature) bool { return czero.Zero_has_feature(int32(feature)) == 1 }

// Describe tells the library's version, ABI, kernel targets, and the modules it found.
func Describe() (string, error) {
	if err := Check(); err != nil {
		return "", err
	}
	return readText(func(out *byte, nbytes int64, needed *int64) error {
		return wrap(czero.Zero_describe_library(out, nbytes, needed))
	})
}
