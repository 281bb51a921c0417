//! Elements between candle's storages and libzero, under candle's locks.

use candle_core::cpu_backend::CpuStorage;
use candle_core::{bail, InplaceOp1, Layout, Result, Storage, Tensor, Var};
use libzero::{Bf16, Element, Optimizer, Param, Slot, F16};

use crate::error::OrCandle;

/// What libzero keeps a var's values as, and candle finds in its storages.
pub(crate) trait Kept: Element {
    /// The elements of a storage of this dtype.
    fn of(storage: &CpuStorage) -> Option<&[Self]>;

    /// The same, to be written.
    fn of_mut(storage: &mut CpuStorage) -> Option<&mut [Self]>;

    /// What an f64 var gets.
    fn to_f64(self) -> f64;
}

impl Kept for f32 {
    fn of(storage: &CpuStorage) -> Option<&[f32]> {
        match storage {
            CpuStorage::F32(values) => Some(values),
            _ => None,
        }
    }

    fn of_mut(storage: &mut CpuStorage) -> Option<&mut [f32]> {
        match storage {
            CpuStorage::F32(values) => Some(values),
            _ => None,
        }
    }

    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

macro_rules! kept_halves {
    ($($type:ty => $dtype:ident),*) => {
        $(
            impl Kept for $type {
                fn of(storage: &CpuStorage) -> Option<&[$type]> {
                    match storage {
                        // SAFETY: both types are transparent over the same 16 bits, and every pattern of them is a value.
                        CpuStorage::$dtype(values) => Some(unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }),
                        _ => None,
                    }
                }

                fn of_mut(storage: &mut CpuStorage) -> Option<&mut [$type]> {
                    match storage {
                        // SAFETY: as above; the slice is the only way to the values while it lives.
                        CpuStorage::$dtype(values) => {
                            Some(unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) })
                        }
                        _ => None,
                    }
                }

                fn to_f64(self) -> f64 {
                    f64::from(self.to_f32())
                }
            }
        )*
    };
}

kept_halves!(F16 => F16, Bf16 => BF16);

/// Gives a gradient to libzero, which copies it.
pub(crate) fn give<T: Kept>(optimizer: &Optimizer, param: Param<T>, grad: &Tensor) -> Result<()> {
    read(grad, |values| optimizer.grad_ready(param, 0, values).or_candle())
}

/// Writes first values into libzero: those of a tensor, or none, where another rank has them. A collective.
///
/// Parameters that libzero keeps as codes are written as their masters.
pub(crate) fn write<T: Kept>(optimizer: &mut Optimizer, param: Param<T>, tensor: Option<&Tensor>) -> Result<()> {
    let slots = optimizer.slots(param.id()).or_candle()?;
    if slots.iter().any(|kept| kept.slot == Slot::Param && kept.dtype != T::DTYPE) {
        let masters = tensor.map(|tensor| tensor.to_dtype(candle_core::DType::F32)).transpose()?;
        return write_slot::<f32>(optimizer, param.id(), Slot::Master, masters.as_ref());
    }
    write_slot::<T>(optimizer, param.id(), Slot::Param, tensor)
}

fn write_slot<T: Kept>(optimizer: &mut Optimizer, id: i64, slot: Slot, tensor: Option<&Tensor>) -> Result<()> {
    match tensor {
        Some(tensor) => read(tensor, |values: &[T]| optimizer.write(id, slot, 0, values).or_candle()),
        None => optimizer.write::<T>(id, slot, 0, &[]).or_candle(),
    }
}

/// Copies libzero's values of a parameter into its var. In stage 3 a collective.
pub(crate) fn take<T: Kept>(optimizer: &Optimizer, param: Param<T>, var: &Var) -> Result<()> {
    var.inplace_op1(&Take { optimizer, param })
}

/// Calls `body` with a tensor's elements in order, those of an f64 tensor as f32.
fn read<T: Kept>(tensor: &Tensor, body: impl FnOnce(&[T]) -> Result<()>) -> Result<()> {
    let tensor = match tensor.dtype() {
        candle_core::DType::F64 => tensor.to_dtype(candle_core::DType::F32)?,
        _ => tensor.clone(),
    };
    let tensor = tensor.contiguous()?;
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else { bail!("a tensor is on a device, but libzero takes those of the CPU") };
    match (T::of(storage), layout.contiguous_offsets()) {
        (Some(values), Some((start, end))) => body(&values[start..end]),
        _ => bail!("a tensor is {:?}, but libzero keeps its var as {:?}", tensor.dtype(), T::DTYPE),
    }
}

/// The copy into a var, in candle's form of an operation that writes where the values lie.
struct Take<'a, T> {
    optimizer: &'a Optimizer,
    param: Param<T>,
}

impl<T: Kept> InplaceOp1 for Take<'_, T> {
    fn name(&self) -> &'static str {
        "libzero"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let Some((start, end)) = layout.contiguous_offsets() else { bail!("a var is not contiguous, so it cannot be set") };
        if let CpuStorage::F64(values) = storage {
            let mut kept = vec![T::default(); end - start];
            self.optimizer.param_into(self.param, &mut kept).or_candle()?;
            for (value, kept) in values[start..end].iter_mut().zip(kept) {
                *value = kept.to_f64();
            }
            return Ok(());
        }
        match T::of_mut(storage) {
            Some(values) => self.optimizer.param_into(self.param, &mut values[start..end]).or_candle(),
            None => bail!("a var changed its dtype, but libzero keeps it as {:?}", T::DTYPE),
        }
    }
}
