//! What libzero knows of dtypes.

use libzero_sys as sys;

use crate::enums::DType;
use crate::error::{check, Result};

impl DType {
    /// Bytes of one element.
    pub fn nbytes(self) -> Result<usize> {
        let mut nbytes = 0;
        // SAFETY: the result goes to a local.
        check(unsafe { sys::zero_dtype_nbytes(self.raw(), &mut nbytes) })?;
        Ok(nbytes as usize)
    }

    /// The name as libzero's texts have it.
    pub(crate) fn name(self) -> String {
        match self {
            DType::F8E4M3 => "f8_e4m3".into(),
            DType::F8Ue5M3 => "f8_ue5m3".into(),
            DType::Other(raw) => format!("dtype {raw}"),
            named => format!("{named:?}").to_lowercase(),
        }
    }
}
