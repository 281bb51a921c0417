package zero

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"example.org/libzero/bindings/go/internal/czero"
)

// A constant that libzero gains is exported here too.
func TestEveryConstantHasAName(t *testing.T) {
	packages, err := parser.ParseDir(token.NewFileSet(), ".", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	ast.Inspect(packages["zero"], func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			used[selector.Sel.Name] = true
		}
		return true
	})
	for _, constant := range czero.Constants {
		internal := constant.Name == "ZERO_OK" || strings.HasPrefix(constant.Name, "ZERO_VERSION_")
		if !used[constant.Name] && !internal {
			t.Errorf("%s is not used", constant.Name)
		}
	}
}

func TestNamesAreThoseOfTheHeaders(t *testing.T) {
	for want, value := range map[string]fmt.Stringer{
		"ZERO_E_TIMEOUT": ErrTimeout, "ZERO_E_UNKNOWN": Status(1), "bf16": DTypeBF16, "99": DType(99), "sum": Sum,
		"first_moment_dtype": KeyFirstMomentDType, "custom": SlotCustom, "custom+3": SlotCustom + 3, "second_scale": SlotSecondScale,
		"root": SourceRoot, "normal": InitialiserNormal, "average": SyncAverage, "replicas": FindingReplicas, "last": MicroStepLast,
		"total": MemoryTotal, "all_to_all": OperationAllToAll, "mpi": FeatureMPI, "nearest": RoundingNearest,
		"untouched": UnfilledUntouched, "remainder": MasterRemainder, "weights": DivisorWeights, "propagate": NonfinitePropagate,
		"device": TierDevice, "i64": KeyTypeI64, "f64": KeyTypeF64, "str": KeyTypeStr, "unknown": KeyType(9),
	} {
		if got := value.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestElementTypesHaveTheirDTypes(t *testing.T) {
	dtypes := []DType{
		DTypeOf[float32](), DTypeOf[float64](), DTypeOf[F16](), DTypeOf[BF16](), DTypeOf[int32](), DTypeOf[int64](), DTypeOf[uint8](),
		DTypeOf[uint16](), DTypeOf[F8E4M3](), DTypeOf[F8UE5M3](),
	}
	if got := fmt.Sprint(dtypes); got != "[f32 f64 f16 bf16 i32 i64 u8 u16 f8_e4m3 f8_ue5m3]" {
		t.Errorf("got %v", got)
	}
	for i, nbytes := range []int{4, 8, 2, 2, 4, 8, 1, 2, 1, 1} {
		if size, err := dtypes[i].Size(); size != nbytes || err != nil {
			t.Errorf("%v: %d bytes, %v", dtypes[i], size, err)
		}
	}
}

func TestTheLibraryTellsWhatItIs(t *testing.T) {
	want := fmt.Sprintf("%d.%d.%d", czero.ZERO_VERSION_MAJOR, czero.ZERO_VERSION_MINOR, czero.ZERO_VERSION_PATCH)
	if Version() != want {
		t.Errorf("version %s, want that of the headers, %s", Version(), want)
	}
	if !HasFeature(FeatureLocal) || HasFeature(Feature(99)) {
		t.Error("features")
	}
}
