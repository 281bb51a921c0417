//! Types of elements: which Rust type stands for which dtype.

use std::fmt::Debug;

use crate::enums::DType;
use crate::half::{Bf16, F16};

/// An 8-bit number with 4 exponent bits and 3 mantissa bits, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F8E4M3(pub u8);

/// An 8-bit number without sign, with 5 exponent bits and 3 mantissa bits, as its bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F8Ue5M3(pub u8);

/// What slots of an optimizer hold: the types of arrays, and those that only states have.
///
/// Sealed: every bit pattern of these types is a value, and they have no padding.
pub trait SlotElement: Copy + Debug + Default + PartialEq + Send + Sync + 'static + sealed::Sealed {
    /// The dtype that this type stands for.
    const DTYPE: DType;
}

/// What arrays hold: collectives, buffers and parameters take slices of these types.
pub trait Element: SlotElement {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! slot_elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {
        $(
            impl sealed::Sealed for $type {}
            impl SlotElement for $type {
                const DTYPE: DType = DType::$dtype;
            }
        )*
    };
}

macro_rules! elements {
    ($($type:ty),*) => {
        $(impl Element for $type {})*
    };
}

slot_elements! {
    f32 => F32,
    f64 => F64,
    F16 => F16,
    Bf16 => Bf16,
    i32 => I32,
    i64 => I64,
    u8 => U8,
    u16 => U16,
    F8E4M3 => F8E4M3,
    F8Ue5M3 => F8Ue5M3,
}

elements!(f32, f64, F16, Bf16, i32, i64, u8);

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_size<T: SlotElement>() {
        assert_eq!(T::DTYPE.nbytes().unwrap(), std::mem::size_of::<T>());
    }

    #[test]
    fn types_have_the_size_of_their_dtype() {
        assert_size::<f32>();
        assert_size::<f64>();
        assert_size::<F16>();
        assert_size::<Bf16>();
        assert_size::<i32>();
        assert_size::<i64>();
        assert_size::<u8>();
        assert_size::<u16>();
        assert_size::<F8E4M3>();
        assert_size::<F8Ue5M3>();
    }
}
