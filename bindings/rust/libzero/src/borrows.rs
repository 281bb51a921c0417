//! What must not compile, each beside its nearest form that does: tests, which rustdoc runs.

/// A parameter's view does not outlive a step.
///
/// ```compile_fail,E0502
/// fn train(optimizer: &mut libzero::Optimizer, w: libzero::Param<f32>) -> libzero::Result<f32> {
///     let view = optimizer.param(w)?;
///     optimizer.step()?;
///     Ok(view[0])
/// }
/// ```
/// ```
/// fn train(optimizer: &mut libzero::Optimizer, w: libzero::Param<f32>) -> libzero::Result<f32> {
///     let view = optimizer.param(w)?;
///     let value = view[0];
///     drop(view);
///     optimizer.step()?;
///     Ok(value)
/// }
/// ```
struct ParamAcrossStep;

/// Views of first values do not outlive begin.
///
/// ```compile_fail,E0502
/// fn first_values(optimizer: &mut libzero::Optimizer, w: libzero::Param<f32>) -> libzero::Result<()> {
///     let mut view = optimizer.param_mut(w)?;
///     optimizer.begin(libzero::Source::Local)?;
///     view[0] = 1.0;
///     Ok(())
/// }
/// ```
/// ```
/// fn first_values(optimizer: &mut libzero::Optimizer, w: libzero::Param<f32>) -> libzero::Result<()> {
///     optimizer.param_mut(w)?[0] = 1.0;
///     optimizer.begin(libzero::Source::Local)
/// }
/// ```
struct FirstValuesAcrossBegin;

/// Memory of a device that a parameter's view names goes with the view.
///
/// ```compile_fail,E0505
/// fn address(optimizer: &libzero::Optimizer, w: libzero::Param<f32>) -> libzero::Result<*const f32> {
///     let view = optimizer.param_device(w)?;
///     let slice = view.slice();
///     drop(view);
///     Ok(slice.as_ptr())
/// }
/// ```
/// ```
/// fn address(optimizer: &libzero::Optimizer, w: libzero::Param<f32>) -> libzero::Result<*const f32> {
///     let view = optimizer.param_device(w)?;
///     let address = view.slice().as_ptr();
///     drop(view);
///     Ok(address)
/// }
/// ```
struct DeviceSliceAfterView;

/// A gradient's view does not outlive a micro-step.
///
/// ```compile_fail,E0502
/// fn accumulate(optimizer: &mut libzero::Optimizer, w: libzero::Param<f32>) -> libzero::Result<()> {
///     let mut gradient = optimizer.grad(w)?;
///     optimizer.micro_step(libzero::MicroStep::Last)?;
///     gradient[0] = 1.0;
///     Ok(())
/// }
/// ```
/// ```
/// fn accumulate(optimizer: &mut libzero::Optimizer, w: libzero::Param<f32>) -> libzero::Result<()> {
///     optimizer.micro_step(libzero::MicroStep::Last)?;
///     optimizer.grad(w)?[0] = 1.0;
///     Ok(())
/// }
/// ```
struct GradientAcrossMicroStep;

/// A gradient that was made ready is gone.
///
/// ```compile_fail,E0382
/// fn give(mut gradient: libzero::GradView<'_, f32>) -> libzero::Result<()> {
///     gradient.ready()?;
///     gradient[0] = 1.0;
///     Ok(())
/// }
/// ```
/// ```
/// fn give(mut gradient: libzero::GradView<'_, f32>) -> libzero::Result<()> {
///     gradient[0] = 1.0;
///     gradient.ready()
/// }
/// ```
struct GradientAfterReady;

/// Slices of a step's views do not outlive gather.
///
/// ```compile_fail,E0505
/// fn update(mut reduction: libzero::Reduction<'_>) -> libzero::Result<()> {
///     let values = reduction.views()?[0].slot::<f32>(libzero::Slot::Param)?;
///     reduction.gather()?;
///     values[0] = 1.0;
///     Ok(())
/// }
/// ```
/// ```
/// fn update(mut reduction: libzero::Reduction<'_>) -> libzero::Result<()> {
///     let values = reduction.views()?[0].slot::<f32>(libzero::Slot::Param)?;
///     values[0] = 1.0;
///     reduction.gather()
/// }
/// ```
struct ViewAcrossGather;

/// While a reduction lives, its optimizer takes no other step.
///
/// ```compile_fail,E0499
/// fn twice(optimizer: &mut libzero::Optimizer) -> libzero::Result<()> {
///     let reduction = optimizer.reduce()?;
///     optimizer.step()?;
///     reduction.gather()
/// }
/// ```
/// ```
/// fn twice(optimizer: &mut libzero::Optimizer) -> libzero::Result<()> {
///     optimizer.reduce()?.gather()?;
///     optimizer.step().map(drop)
/// }
/// ```
struct StepWithinStep;

/// A checkpoint that saves in the background is gone, and its optimizer is free.
///
/// ```compile_fail,E0382
/// fn save(mut checkpoint: libzero::Checkpoint<'_>) -> libzero::Result<()> {
///     let saving = checkpoint.save_async("saves")?;
///     checkpoint.set_text("epoch", Some("3"))?;
///     saving.wait().map(drop)
/// }
/// ```
/// ```
/// fn save(mut checkpoint: libzero::Checkpoint<'_>) -> libzero::Result<()> {
///     checkpoint.set_text("epoch", Some("3"))?;
///     let saving = checkpoint.save_async("saves")?;
///     saving.wait().map(drop)
/// }
/// ```
struct CheckpointAfterSaving;

/// A shard is not written while it is looked at.
///
/// ```compile_fail,E0502
/// fn shift(buffer: &mut libzero::Buffer<f32>) -> libzero::Result<f32> {
///     let shard = buffer.shard()?;
///     buffer.write(0, &[1.0])?;
///     Ok(shard[0])
/// }
/// ```
/// ```
/// fn shift(buffer: &mut libzero::Buffer<f32>) -> libzero::Result<f32> {
///     buffer.write(0, &[1.0])?;
///     Ok(buffer.shard()?[0])
/// }
/// ```
struct ShardAcrossWrite;

/// Views stay on their thread, their slices may go to others.
///
/// ```compile_fail,E0277
/// fn elsewhere(view: libzero::ParamView<'_, f32>) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| view[0]);
///     });
/// }
/// ```
/// ```
/// fn elsewhere(view: libzero::ParamView<'_, f32>) {
///     let values: &[f32] = &view;
///     std::thread::scope(|scope| {
///         scope.spawn(|| values[0]);
///     });
/// }
/// ```
struct ViewOnAnotherThread;

/// An optimizer is used by one thread at a time, to which it may be moved.
///
/// ```compile_fail,E0277
/// fn elsewhere(optimizer: libzero::Optimizer) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| optimizer.describe());
///     });
/// }
/// ```
/// ```
/// fn elsewhere(optimizer: libzero::Optimizer) {
///     std::thread::scope(|scope| {
///         scope.spawn(move || optimizer.describe());
///     });
/// }
/// ```
struct OptimizerOnTwoThreads;

/// Slots have elements of their own types; arrays have not all of them.
///
/// ```compile_fail,E0277
/// let buffer = libzero::Buffer::<u16>::new(&libzero::Group::alone(None)?, 10, None)?;
/// # Ok::<(), libzero::Error>(())
/// ```
/// ```
/// let buffer = libzero::Buffer::<u8>::new(&libzero::Group::alone(None)?, 10, None)?;
/// # Ok::<(), libzero::Error>(())
/// ```
struct BufferOfSlotElements;
