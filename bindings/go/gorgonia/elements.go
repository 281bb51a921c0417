package zerogorgonia

import (
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// elements are those of a value or gradient in row-major order: one of f32 and f64 is nil.
type elements struct {
	f32    []float32
	f64    []float64
	copied *tensor.Dense // whose elements do not lie end to end, so that the slice is a copy
}

// elementsOf finds the elements of a value that has the shape and type of a tensor.
func elementsOf(value gorgonia.Value, like tensorInfo) (elements, error) {
	switch value := value.(type) {
	case *gorgonia.F32:
		return matching(elements{f32: unsafe.Slice((*float32)(value), 1)}, like)
	case *gorgonia.F64:
		return matching(elements{f64: unsafe.Slice((*float64)(value), 1)}, like)
	case *tensor.Dense:
		found, err := elementsOfDense(value)
		if err != nil {
			return elements{}, err
		}
		return matching(found, like)
	}
	return elements{}, fmt.Errorf("is a %T, but must be a *tensor.Dense, *gorgonia.F32 or *gorgonia.F64", value)
}

func elementsOfDense(dense *tensor.Dense) (elements, error) {
	if dense.IsMasked() || !dense.IsNativelyAccessible() {
		return elements{}, fmt.Errorf("is masked, or lies on a device")
	}
	if dense.DataOrder().IsColMajor() {
		return elements{}, fmt.Errorf("lies column after column, but must lie row after row")
	}
	count := countOf(dense.Shape())
	var found elements
	switch dense.Dtype() {
	case tensor.Float32:
		found.f32 = dense.Float32s()
	case tensor.Float64:
		found.f64 = dense.Float64s()
	default:
		return elements{}, fmt.Errorf("is %v, but must be float32 or float64", dense.Dtype())
	}
	if dense.RequiresIterator() {
		return gathered(dense, found, count)
	}
	if found.f32 != nil {
		found.f32 = found.f32[:count]
	} else {
		found.f64 = found.f64[:count]
	}
	return found, nil
}

// gathered copies the elements of a view, for example of a transposed matrix, end to end.
func gathered(dense *tensor.Dense, from elements, count int) (elements, error) {
	to := elements{copied: dense}
	visited := dense.Iterator()
	for place, err := visited.Start(); err == nil; place, err = visited.Next() {
		if from.f32 != nil {
			to.f32 = append(to.f32, from.f32[place])
		} else {
			to.f64 = append(to.f64, from.f64[place])
		}
	}
	if got := len(to.f32) + len(to.f64); got != count {
		return elements{}, fmt.Errorf("is a view that visits %d elements, but its shape has %d", got, count)
	}
	return to, nil
}

// matching refuses elements of another count or type than a tensor has.
func matching(found elements, like tensorInfo) (elements, error) {
	count, dtype := len(found.f32), tensor.Float32
	if found.f64 != nil {
		count, dtype = len(found.f64), tensor.Float64
	}
	if want := countOf(like.shape); count != want || dtype != like.dtype {
		return elements{}, fmt.Errorf("has %d elements of %v, but the node has %d of %v", count, dtype, want, like.dtype)
	}
	return found, nil
}

func countOf(shape []int) int {
	count := 1
	for _, extent := range shape {
		count *= extent
	}
	return count
}

// toFloat32s returns the elements as libzero takes them: those of a float64 tensor rounded, in a copy.
func (e elements) toFloat32s() []float32 {
	if e.f64 == nil {
		return e.f32
	}
	rounded := make([]float32, len(e.f64))
	for i, element := range e.f64 {
		rounded[i] = float32(element)
	}
	return rounded
}

func sameBits(a, b []float32) bool {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// widen sets the elements of a float64 tensor; those of a float32 tensor are there already.
func (e elements) widen(from []float32) {
	for i := range e.f64 {
		e.f64[i] = float64(from[i])
	}
}

// zero sets a gradient to zero where it lies.
func (e elements) zero() {
	if e.copied != nil {
		e.copied.Zero()
	}
	for i := range e.f32 {
		e.f32[i] = 0
	}
	for i := range e.f64 {
		e.f64[i] = 0
	}
}
