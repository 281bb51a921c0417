package zero_test

import (
	"context"
	"errors"
	"math"
	"testing"

	zero "example.org/libzero/bindings/go"
	"example.org/libzero/bindings/go/internal/ranks"
)

var ctx = context.Background()

// rank is one rank of a test.
type rank struct {
	*testing.T
	*zero.Group
	id, size int
}

// failure is how check ends a rank.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[V any](value V, err error) V {
	check(err)
	return value
}

// onRanks runs body on the ranks of a local group. A rank whose check fails fails the test and ends the group.
func onRanks(t *testing.T, size int, body func(r rank)) {
	t.Helper()
	for id, err := range ranks.Run(size, nil, func(g *zero.Group, id int) (err error) {
		defer catch(&err)
		body(rank{t, g, id, size})
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", id, err)
		}
	}
}

// alone runs body in a world of one.
func alone(t *testing.T, body func(r rank)) {
	t.Helper()
	onRanks(t, 1, body)
}

func catch(err *error) {
	switch reason := recover().(type) {
	case nil:
	case failure:
		*err = reason.error
	default:
		panic(reason)
	}
}

// wantError tells that err is not the one that was expected.
func wantError(t testing.TB, what string, err error, want zero.Status) {
	t.Helper()
	var e *zero.Error
	if !errors.Is(err, want) || !errors.As(err, &e) || e.Text == "" {
		t.Errorf("%s: got %v, want %v with a text", what, err, want)
	}
}

func wantEqual[V comparable](t testing.TB, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// wantSlices compares bits, so that equal NaN are equal.
func wantSlices[V zero.Element](t testing.TB, what string, got, want []V) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %d elements, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if bits(got[i]) != bits(want[i]) {
			t.Errorf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

func bits[V zero.Element](value V) any {
	switch value := any(value).(type) {
	case float32:
		return math.Float32bits(value)
	case float64:
		return math.Float64bits(value)
	}
	return value
}

// ramp returns first, first + 1, ...
func ramp[V float32 | float64 | int32 | int64 | uint8](count, first int) []V {
	values := make([]V, count)
	for i := range values {
		values[i] = V(first + i)
	}
	return values
}
