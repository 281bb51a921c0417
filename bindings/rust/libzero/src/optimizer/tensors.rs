//! What an optimizer's tensors are, as they were registered: what typed access to untyped memory is checked against.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt::Display;

use crate::element::SlotElement;
use crate::enums::{Code, DType};
use crate::error::{Error, Result};
use crate::optimizer::Optimizer;

/// A parameter. Tied parameters share the memory of their holder, so its locks count for all of them.
#[derive(Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) grad_dtype: DType,
    pub(crate) count: usize,
    /// Elements with the same first index.
    pub(crate) width: usize,
    /// The id of the parameter that it is tied to, or its own.
    pub(crate) holder: usize,
    pub(crate) values: RefCell<()>,
    /// True while what is in the acquired memory is left from before: handed out to overwrite, and nothing written yet.
    pub(crate) gradient: RefCell<bool>,
}

/// A module buffer.
#[derive(Debug)]
pub(crate) struct ModuleTensor {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) values: RefCell<()>,
}

/// Elements of a tensor whose shape libzero has taken.
pub(crate) fn count_of(shape: &[i64]) -> usize {
    if shape.contains(&0) {
        return 0; // the others may be so large that their product is no number
    }
    shape.iter().map(|&extent| extent as usize).product()
}

/// An error unless `T` is what libzero keeps as `dtype`.
pub(crate) fn check_type<T: SlotElement>(what: impl Display, dtype: DType) -> Result<()> {
    if T::DTYPE == dtype {
        return Ok(());
    }
    let text = format!("{what} is {}, but was asked for as {}", dtype.name(), T::DTYPE.name());
    Err(Error::new(Code::InvalidArgument, text))
}

/// For views that only read.
pub(crate) fn share(lock: &RefCell<()>, what: impl Display) -> Result<Ref<'_, ()>> {
    lock.try_borrow().map_err(|_| taken(what))
}

/// For views that write.
pub(crate) fn take<T>(lock: &RefCell<T>, what: impl Display) -> Result<RefMut<'_, T>> {
    lock.try_borrow_mut().map_err(|_| taken(what))
}

fn taken(what: impl Display) -> Error {
    Error::new(Code::State, format!("{what} is held by a view; drop that first"))
}

impl Optimizer {
    pub(crate) fn tensor(&self, id: i64) -> Result<&Tensor> {
        let found = usize::try_from(id).ok().and_then(|index| self.params.get(index));
        found.ok_or_else(|| unknown(id, "parameters", self.params.len()))
    }

    /// Whose memory the tensor has.
    pub(crate) fn holder(&self, tensor: &Tensor) -> &Tensor {
        &self.params[tensor.holder]
    }

    pub(crate) fn module_tensor(&self, id: i64) -> Result<&ModuleTensor> {
        let found = usize::try_from(id).ok().and_then(|index| self.module_buffers.get(index));
        found.ok_or_else(|| unknown(id, "module buffers", self.module_buffers.len()))
    }
}

fn unknown(id: i64, what: &str, count: usize) -> Error {
    let text = format!("id is {id}, but must be that of one of the {count} {what} (from 0)");
    Error::new(Code::InvalidArgument, text)
}

#[cfg(test)]
mod tests {
    use super::count_of;

    #[test]
    fn shapes_have_the_product_of_their_extents() {
        assert_eq!(count_of(&[]), 1);
        assert_eq!(count_of(&[20, 30]), 600);
        assert_eq!(count_of(&[i64::MAX, i64::MAX, 0]), 0);
    }
}
