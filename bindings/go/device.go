package zero

import (
	"context"
	"fmt"
	"unsafe"

	"example.org/libzero/bindings/go/internal/czero"
)

// DeviceSlice is elements in memory of a CUDA device: an address with its device and length. Go cannot read them, so they are never a slice.
// Who makes one answers for the address; the garbage collector does not see it. A method that returned has taken elements of the device in
// KeyTier TierHost; with TierDevice the memory stays until what the stream was given has ended.
type DeviceSlice[T Element] struct {
	Device  int     // its number
	Address uintptr // of the first element
	Len     int     // elements
}

// Slice returns elements from begin to end; it panics as a slice does.
func (d DeviceSlice[T]) Slice(begin, end int) DeviceSlice[T] {
	if begin < 0 || begin > end || end > d.Len {
		panic(fmt.Sprintf("zero: elements %d to %d of a DeviceSlice of %d", begin, end, d.Len))
	}
	var element T
	return DeviceSlice[T]{d.Device, d.Address + uintptr(begin)*unsafe.Sizeof(element), end - begin}
}

// place is where the elements lie. libzero takes nil for acquired memory, so no elements lie somewhere too.
func (d DeviceSlice[T]) place() unsafe.Pointer {
	if d.Len == 0 {
		return placeOf[T](nil)
	}
	return pointerOf(d.Address)
}

// pointerOf returns an address of memory that Go does not own.
func pointerOf(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// SetStream sets the stream of KeyDevice (a cudaStream_t) of all later calls; 0 is the default stream of the device. Memory of the device is
// read and written after all work that the stream was given before a call; what it is given after a call sees the results. The stream exists
// until another one was set and all parameters acquired meanwhile were released.
func (o *Optimizer) SetStream(stream uintptr) error {
	var count int64
	if o == nil || o.object.closed.Load() {
		return o.self().do(func(raw czero.Optimizer) *czero.Failure { return czero.Zero_optimizer_view_count(raw, &count) })
	}
	return o.self().do(func(czero.Optimizer) *czero.Failure {
		o.stream = stream
		return nil
	})
}

// onStream returns the stream of a call, within it.
func (o *Optimizer) onStream() unsafe.Pointer {
	if o == nil {
		return nil
	}
	return pointerOf(o.stream)
}

// AcquireDevice is Acquire with TierDevice. Release comes after all work that uses the parameter was given to the stream.
func AcquireDevice[T Element](ctx context.Context, o *Optimizer, id int) (DeviceSlice[T], error) {
	param := o.param(id)
	if err := o.checkLends(true); err != nil {
		return DeviceSlice[T]{}, err
	}
	if err := checkElement[T]("parameter", id, param.dtype); err != nil {
		return DeviceSlice[T]{}, err
	}
	address, err := o.acquire(ctx, id)
	return lentOf[T](o, address, param.count, err)
}

// CopyParamDevice is CopyParam into memory of the device.
func CopyParamDevice[T Element](ctx context.Context, o *Optimizer, id int, dst DeviceSlice[T]) error {
	if err := checkElement[T]("parameter", id, o.param(id).dtype); err != nil {
		return err
	}
	if err := o.checkDevice(dst.Device); err != nil {
		return err
	}
	return o.fill(ctx, id, dst.place(), dst.Len)
}

// AcquireGradDevice is AcquireGrad with TierDevice.
func AcquireGradDevice[T Element](ctx context.Context, o *Optimizer, id int) (grad DeviceSlice[T], add bool, err error) {
	param := o.param(id)
	if err := o.checkLends(true); err != nil {
		return grad, false, err
	}
	if err := checkElement[T]("the gradient of parameter", id, param.grad); err != nil {
		return grad, false, err
	}
	address, add, err := o.acquireGrad(ctx, id)
	grad, err = lentOf[T](o, address, param.count, err)
	return grad, add, err
}

// GiveGradDevice is GiveGrad of memory of the device.
func GiveGradDevice[T Element](ctx context.Context, o *Optimizer, id, offset int, grad DeviceSlice[T]) error {
	if err := checkElement[T]("the gradient of parameter", id, o.param(id).grad); err != nil {
		return err
	}
	if err := o.checkDevice(grad.Device); err != nil {
		return err
	}
	return o.giveGrad(ctx, id, offset, grad.place(), grad.Len)
}

// NewGradientsDevice is NewGradients of memory of the device; one without elements and address 0 stands for the gradient that was acquired.
func NewGradientsDevice[T Element](o *Optimizer, ids []int, grads []DeviceSlice[T]) (*Gradients[T], error) {
	if len(grads) != len(ids) {
		return nil, invalid("%d ids are given, but %d gradients", len(ids), len(grads))
	}
	made, err := NewGradients[T](o, ids, nil)
	if err != nil {
		return nil, err
	}
	for i, grad := range grads {
		if grad == (DeviceSlice[T]{}) {
			continue
		}
		if err := o.checkDevice(grad.Device); err != nil {
			return nil, err
		}
		if param := o.param(ids[i]); grad.Len != param.count && param.grad != 0 {
			return nil, invalid("the gradient of parameter %d has %d elements, but the DeviceSlice has %d", ids[i], param.count, grad.Len)
		}
		if grad.Len > 0 {
			made.places[i] = grad.Address
		} else {
			made.grads[i] = make([]T, 1) // no elements lie somewhere
			made.places[i] = uintptr(addressOf(made.grads[i]))
		}
	}
	return made, nil
}

// DeviceView is a View in memory of the device.
type DeviceView[T Element] struct {
	Param  int            // the parameter's id
	Offset int            // first element within it
	Data   DeviceSlice[T] // libzero's memory
}

// ViewAtDevice is ViewAt with TierDevice.
func ViewAtDevice[T Element](o *Optimizer, index int, slot Slot) (DeviceView[T], error) {
	if err := o.checkLends(true); err != nil {
		return DeviceView[T]{}, err
	}
	piece, err := pieceAt[T](o, index, slot)
	data, err := lentOf[T](o, piece.address, piece.count, err)
	return DeviceView[T]{piece.param, piece.offset, data}, err
}

// ViewsDevice is Views with TierDevice.
func ViewsDevice[T Element](o *Optimizer, slot Slot) ([]DeviceView[T], error) {
	count, err := o.ViewCount()
	if err != nil {
		return nil, err
	}
	views := make([]DeviceView[T], count)
	for index := range views {
		if views[index], err = ViewAtDevice[T](o, index, slot); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// lentOf returns memory of libzero on the device, unless there is an error.
func lentOf[T Element](o *Optimizer, address uintptr, count int, err error) (DeviceSlice[T], error) {
	if err != nil {
		return DeviceSlice[T]{}, err
	}
	return DeviceSlice[T]{int(o.device), address, count}, nil
}

// checkDevice compares the device of memory with that of the optimizer: libzero would take the address for one of the host where the
// optimizer has no device.
func (o *Optimizer) checkDevice(device int) error {
	switch {
	case o == nil || o.object.handle == 0 || device >= 0 && int64(device) == o.device:
		return nil
	case o.device < 0:
		return invalid("the memory lies on CUDA device %d, but the optimizer has no KeyDevice", device)
	}
	return invalid("the memory lies on CUDA device %d, but the optimizer has KeyDevice %d", device, o.device)
}

// checkLends compares where a function expects libzero's memory with where it is.
func (o *Optimizer) checkLends(onDevice bool) error {
	if o == nil || o.object.handle == 0 || o.onDevice == onDevice {
		return nil
	}
	text := "the optimizer keeps its memory on the host (TierHost): use the function without Device in its name"
	if o.onDevice {
		text = "the optimizer keeps its memory on a device (TierDevice): use the function with Device in its name"
	}
	return wrap(&czero.Failure{Code: int32(ErrUnsupported), Text: text})
}
