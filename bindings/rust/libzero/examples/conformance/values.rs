//! The numbers that scenarios compute with.

use libzero::{Bf16, Element};

/// An element type of the scenarios.
pub trait Value: Element + Default {
    /// From k in 0 .. 96.
    fn of(k: u8) -> Self;
    /// As memory holds it.
    fn bytes(self) -> Vec<u8>;
}

macro_rules! values {
    ($($type:ty, $k:ident => $of:expr;)*) => {
        $(
            impl Value for $type {
                fn of($k: u8) -> Self {
                    $of
                }

                fn bytes(self) -> Vec<u8> {
                    self.to_ne_bytes().to_vec()
                }
            }
        )*
    };
}

values! {
    f32, k => (f32::from(k) - 48.0) / 16.0;
    f64, k => (f64::from(k) - 48.0) / 16.0;
    i32, k => i32::from(k) - 48;
    i64, k => i64::from(k) - 48;
    u8, k => k;
}

impl Value for Bf16 {
    fn of(k: u8) -> Self {
        Bf16((f32::of(k).to_bits() >> 16) as u16)
    }

    fn bytes(self) -> Vec<u8> {
        self.0.to_ne_bytes().to_vec()
    }
}

/// v(i, s).
pub fn v<T: Value>(i: usize, s: usize) -> T {
    T::of(((7 * i + 13 * s) % 97) as u8)
}

/// v(0, s), v(1, s), ...
pub fn array<T: Value>(count: usize, s: usize) -> Vec<T> {
    (0..count).map(|i| v(i, s)).collect()
}
