package zero

import (
	"strconv"
	"strings"
	"sync"

	"example.org/libzero/bindings/go/internal/czero"
)

// constantNames holds the lower-case names of libzero's constants by prefix and value.
var constantNames struct {
	once sync.Once
	by   map[string]map[int64]string
}

// nameOf returns what follows the prefix in the name of a constant, in lower case, and the number where there is none.
func nameOf(prefix string, value int64) string {
	constantNames.once.Do(readNames)
	if name, ok := constantNames.by[prefix][value]; ok {
		return name
	}
	return strconv.FormatInt(value, 10)
}

func readNames() {
	constantNames.by = make(map[string]map[int64]string)
	for _, prefix := range namedPrefixes {
		names := make(map[int64]string)
		for _, constant := range czero.Constants {
			if strings.HasPrefix(constant.Name, prefix) {
				names[constant.Value] = strings.ToLower(strings.TrimPrefix(constant.Name, prefix))
			}
		}
		constantNames.by[prefix] = names
	}
}

// namedPrefixes are those of the enumerations that have a String method by name.
var namedPrefixes = []string{
	"ZERO_CODE_", "ZERO_DIVISOR_", "ZERO_DTYPE_", "ZERO_FEATURE_", "ZERO_FINDING_", "ZERO_INITIALISER_", "ZERO_KEY_", "ZERO_MASTER_", "ZERO_MEMORY_",
	"ZERO_MICRO_STEP_", "ZERO_NONFINITE_", "ZERO_OPERATION_", "ZERO_PART_", "ZERO_REDUCE_", "ZERO_ROUNDING_", "ZERO_SCOPE_", "ZERO_SLOT_",
	"ZERO_SERVER_ORDER_", "ZERO_SERVER_RULE_", "ZERO_SNAPSHOT_", "ZERO_SOURCE_", "ZERO_SYNC_", "ZERO_TEXT_",
	"ZERO_TIER_", "ZERO_UNFILLED_",
}
