package zerogorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// tensorInfo is what the nodes of a model must have in common in all steps and on all ranks.
type tensorInfo struct {
	name  string
	shape []int
	dtype tensor.Dtype
}

func (t tensorInfo) String() string { return fmt.Sprintf("%q, %v %v", t.name, t.dtype, t.shape) }

// describe looks at the values of a model.
func describe(model []gorgonia.ValueGrad) ([]tensorInfo, error) {
	tensors := make([]tensorInfo, len(model))
	seen := make(map[string]int, len(model))
	for i, node := range model {
		name := fmt.Sprintf("node %d", i)
		if named, ok := node.(gorgonia.Namer); ok {
			name = named.Name()
		}
		if first, ok := seen[name]; ok {
			return nil, fmt.Errorf("zerogorgonia: nodes %d and %d of the model are both called %q; name each with gorgonia.WithName", first, i, name)
		}
		seen[name] = i
		value := node.Value()
		if value == nil {
			return nil, fmt.Errorf("zerogorgonia: node %d of the model, %q, has no value; give it one with gorgonia.WithInit or WithValue", i, name)
		}
		tensors[i] = tensorInfo{name, append([]int{}, value.Shape()...), value.Dtype()}
		if _, err := elementsOf(value, tensors[i]); err != nil {
			return nil, fmt.Errorf("zerogorgonia: the value of node %d of the model, %q, %w", i, name, err)
		}
	}
	return tensors, nil
}

// firstDifference says where two models differ; "" where they do not.
func firstDifference(now, first []tensorInfo) string {
	for i := range now {
		if i < len(first) && now[i].String() != first[i].String() {
			return fmt.Sprintf("node %d is %v, but was %v", i, now[i], first[i])
		}
	}
	if len(now) != len(first) {
		return fmt.Sprintf("it has %d nodes, but had %d", len(now), len(first))
	}
	return ""
}

// valueOf returns the elements of a node's value, where they lie.
func (t tensorInfo) valueOf(node gorgonia.ValueGrad) (elements, error) {
	found, err := elementsOf(node.Value(), t)
	if err == nil && found.copied != nil {
		err = fmt.Errorf("is a view whose elements do not lie end to end; give the node its Materialize()")
	}
	if err != nil {
		return elements{}, fmt.Errorf("zerogorgonia: the value of node %q %w", t.name, err)
	}
	return found, nil
}

// gradientOf returns the elements of a node's gradient.
func (t tensorInfo) gradientOf(node gorgonia.ValueGrad) (elements, error) {
	gradient, err := node.Grad()
	if err == nil && gradient == nil {
		err = fmt.Errorf("is missing")
	}
	if err != nil {
		return elements{}, fmt.Errorf("zerogorgonia: the gradient of node %q: %w; run a graph with gorgonia.Grad, or a machine with BindDualValues", t.name, err)
	}
	found, err := elementsOf(gradient, t)
	if err != nil {
		return elements{}, fmt.Errorf("zerogorgonia: the gradient of node %q %w", t.name, err)
	}
	return found, nil
}
