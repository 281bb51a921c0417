package zero

import (
	"runtime"
	"sync"
	"sync/atomic"

	"example.org/libzero/bindings/go/internal/czero"
)

// Config is a set of keys and values that groups, buffers, optimizers and parameters are made from. They copy what they need: a Config may
// be changed or closed afterwards. Where a Config is an argument, nil and the zero Config, which takes no settings, stand for an empty one.
type Config struct {
	handle czero.Config
	closed atomic.Bool

	mutex   sync.Mutex
	applied map[Key]setter // what was set, for copies; none may refer to this Config, whose finalizer would then never run
	dtypes  storedDTypes
}

// setter sets a key to a value in any config.
type setter func(czero.Config) *czero.Failure

// storedDTypes is what typed slices must know of a config, which libzero does not tell.
type storedDTypes struct {
	grad    DType // KeyGradDType; 0 = that of the parameter
	gradSet bool
	tiedTo  int // KeyTiedTo, when it is set
	tied    bool

	device    int64 // KeyDevice, when it is set
	deviceSet bool
	onDevice  bool // KeyTier is TierDevice
}

// Setting is a key with its value, for NewConfig.
type Setting func(*Config) error

// Integer is what keys of whole numbers take; the enumerations of this package are such numbers.
type Integer interface {
	~int | ~int32 | ~int64
}

// Int sets a key of type i64.
func Int[V Integer](key Key, value V) Setting {
	return func(c *Config) error { return c.SetI64(key, int64(value)) }
}

// Float sets a key of type f64.
func Float(key Key, value float64) Setting {
	return func(c *Config) error { return c.SetF64(key, value) }
}

// Text sets a key of type str.
func Text(key Key, value string) Setting {
	return func(c *Config) error { return c.SetStr(key, value) }
}

// NewConfig makes a config with these settings; every other key has its default.
func NewConfig(settings ...Setting) (*Config, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	c := &Config{applied: make(map[Key]setter)}
	if err := wrap(czero.Zero_config_create(&c.handle)); err != nil {
		return nil, err
	}
	runtime.SetFinalizer(c, (*Config).Close)
	for _, set := range settings {
		if err := set(c); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// SetI64 sets a key of type i64.
func (c *Config) SetI64(key Key, value int64) error {
	return wrap(c.lend(func(raw czero.Config) *czero.Failure {
		failure := c.apply(raw, key, func(raw czero.Config) *czero.Failure { return czero.Zero_config_set_i64(raw, int32(key), value) })
		if failure == nil {
			c.note(key, value)
		}
		return failure
	}))
}

// SetF64 sets a key of type f64.
func (c *Config) SetF64(key Key, value float64) error {
	return c.set(key, func(raw czero.Config) *czero.Failure { return czero.Zero_config_set_f64(raw, int32(key), value) })
}

// SetStr sets a key of type str.
func (c *Config) SetStr(key Key, value string) error {
	if err := checkText("value", value); err != nil {
		return err
	}
	return c.set(key, func(raw czero.Config) *czero.Failure { return czero.Zero_config_set_str(raw, int32(key), value) })
}

// Close gives the config back. It may be called again, and always returns nil. There is nothing to give back of the zero Config.
func (c *Config) Close() error {
	if c != nil && c.handle != 0 && c.closed.CompareAndSwap(false, true) {
		runtime.SetFinalizer(c, nil)
		czero.Zero_config_release(c.handle)
	}
	return nil
}

func (c *Config) set(key Key, set setter) error {
	return wrap(c.lend(func(raw czero.Config) *czero.Failure { return c.apply(raw, key, set) }))
}

// apply sets a key, within lend.
func (c *Config) apply(raw czero.Config, key Key, set setter) *czero.Failure {
	failure := set(raw)
	if failure == nil {
		c.applied[key] = set
	}
	return failure
}

// lend makes a call that reads or changes the config, one at a time. The handle of a closed config is one that libzero refuses.
func (c *Config) lend(use func(czero.Config) *czero.Failure) *czero.Failure {
	if c == nil {
		return use(0)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return use(c.handle)
}

// snapshot returns a copy for a call that waits for other ranks, which may be waiting for the same Config; the caller releases it.
func (c *Config) snapshot() (czero.Config, error) {
	if c == nil {
		return 0, nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closed.Load() {
		return c.handle, nil
	}
	var raw czero.Config
	failure := czero.Zero_config_create(&raw)
	for _, set := range c.applied {
		if failure == nil {
			failure = set(raw)
		}
	}
	if failure != nil {
		czero.Zero_config_release(raw)
		return 0, wrap(failure)
	}
	return raw, nil
}

// note keeps what typed slices must know, within lend.
func (c *Config) note(key Key, value int64) {
	switch key {
	case KeyGradDType:
		c.dtypes.grad, c.dtypes.gradSet = DType(value), true
	case KeyTiedTo:
		c.dtypes.tiedTo, c.dtypes.tied = int(value), true
	case KeyDevice:
		c.dtypes.device, c.dtypes.deviceSet = value, true
	case KeyTier:
		c.dtypes.onDevice = Tier(value) == TierDevice
	}
}

// known returns the dtypes of a config that may be nil: within lend, so that they are those that libzero reads in the same call.
func (c *Config) known() storedDTypes {
	if c == nil {
		return storedDTypes{}
	}
	return c.dtypes
}
