package zero

import "example.org/libzero/bindings/go/internal/czero"

// SetF64 sets a hyper-parameter of a parameter set, from the next step on, the same on all ranks: set 0 or what AddSet gave, and a key of
// hyper-parameters or KeyLossScale. Not between Reduce and Gather.
func (o *Optimizer) SetF64(set int, key Key, value float64) error {
	return o.self().do(func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_set_f64(raw, int64(set), int32(key), value)
	})
}

// GetF64 returns a hyper-parameter of a parameter set.
func (o *Optimizer) GetF64(set int, key Key) (float64, error) {
	var value float64
	err := o.self().do(func(raw czero.Optimizer) *czero.Failure {
		return czero.Zero_optimizer_get_f64(raw, int64(set), int32(key), &value)
	})
	return value, err
}

// SetI64 sets a scalar of the run, the same on all ranks: KeyStepCount and those after it.
func (o *Optimizer) SetI64(key Key, value int64) error {
	return o.self().do(func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_set_i64(raw, int32(key), value) })
}

// GetI64 returns a scalar of the run.
func (o *Optimizer) GetI64(key Key) (int64, error) {
	var value int64
	err := o.self().do(func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_get_i64(raw, int32(key), &value) })
	return value, err
}
