//! 16-bit floats as their bits, and conversions from and to f32.

/// IEEE 754 binary16, as its bits.
///
/// ```
/// use libzero::F16;
///
/// assert_eq!(F16::from_f32(1.0), F16(0x3c00));
/// assert_eq!(F16(0xc000).to_f32(), -2.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F16(pub u16);

/// The upper half of binary32, as its bits.
///
/// ```
/// use libzero::Bf16;
///
/// assert_eq!(Bf16::from_f32(1.0), Bf16(0x3f80));
/// assert_eq!(Bf16(0xc000).to_f32(), -2.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Bf16(pub u16);

const F32_INFINITY: u32 = 0x7f80_0000;
const F16_INFINITY: u16 = 0x7c00;
const F16_MANTISSA_BITS: u32 = 10;
const DROPPED_BITS: u32 = 23 - F16_MANTISSA_BITS;
/// Between the exponents' biases, in the place of binary32's exponent.
const BIAS: u32 = (127 - 15) << 23;
/// 2^-24, the unit of subnormal binary16.
const F16_UNIT: f32 = 1.0 / 16_777_216.0;

impl F16 {
    /// The nearest value, ties to even; infinity for what is too large.
    pub fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        F16(sign | Self::narrow(magnitude))
    }

    /// The same value, exactly.
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let rest = self.0 & 0x7fff;
        let magnitude = if rest >= F16_INFINITY {
            F32_INFINITY | u32::from(rest & 0x3ff) << DROPPED_BITS
        } else if rest >> F16_MANTISSA_BITS > 0 {
            (u32::from(rest) << DROPPED_BITS) + BIAS
        } else {
            (f32::from(rest) * F16_UNIT).to_bits()
        };
        f32::from_bits(sign | magnitude)
    }

    /// The bits of a number that is not negative.
    fn narrow(magnitude: u32) -> u16 {
        const QUIET_NAN: u16 = 0x7e00;
        /// Halfway between the largest finite binary16 and the next power of two.
        const TOO_LARGE: f32 = 65520.0;
        /// 2^-14.
        const FIRST_NORMAL: f32 = 1024.0 * F16_UNIT;
        if magnitude > F32_INFINITY {
            return QUIET_NAN;
        }
        if magnitude >= TOO_LARGE.to_bits() {
            return F16_INFINITY;
        }
        if magnitude < FIRST_NORMAL.to_bits() {
            // 2^-24 is the unit of floats in 0.5 .. 1 too: the addition rounds.
            return ((f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits()) as u16;
        }
        let odd = magnitude >> DROPPED_BITS & 1;
        ((magnitude - BIAS + (1 << (DROPPED_BITS - 1)) - 1 + odd) >> DROPPED_BITS) as u16
    }
}

impl Bf16 {
    /// The nearest value, ties to even.
    pub fn from_f32(value: f32) -> Self {
        const QUIET_NAN: u16 = 0x7fc0;
        let bits = value.to_bits();
        if value.is_nan() {
            return Bf16(QUIET_NAN);
        }
        Bf16(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }

    /// The same value, exactly.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl From<F16> for f32 {
    fn from(value: F16) -> f32 {
        value.to_f32()
    }
}

impl From<Bf16> for f32 {
    fn from(value: Bf16) -> f32 {
        value.to_f32()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bf16, F16};

    #[test]
    fn every_value_survives_the_way_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            if F16(bits).to_f32().is_nan() {
                assert!(F16::from_f32(F16(bits).to_f32()).to_f32().is_nan());
            } else {
                assert_eq!(F16::from_f32(F16(bits).to_f32()), F16(bits));
            }
            if !Bf16(bits).to_f32().is_nan() {
                assert_eq!(Bf16::from_f32(Bf16(bits).to_f32()), Bf16(bits));
            }
        }
        assert!(Bf16::from_f32(f32::NAN).to_f32().is_nan());
    }

    #[test]
    fn halves_between_neighbours_go_to_the_even_one() {
        for bits in 0..0x7bff {
            let (low, high) = (F16(bits).to_f32(), F16(bits + 1).to_f32());
            let half = low + (high - low) / 2.0;
            let even = F16(bits + (bits & 1));
            assert_eq!(F16::from_f32(half), even, "{half}");
            assert_eq!(F16::from_f32(-half).0, even.0 | 0x8000);
            assert_eq!(F16::from_f32(f32::from_bits(half.to_bits() + 1)), F16(bits + 1));
            assert_eq!(F16::from_f32(f32::from_bits(half.to_bits() - 1)), F16(bits));
        }
        for bits in 0..0x7f7f {
            let half = f32::from_bits(u32::from(bits) << 16 | 0x8000);
            assert_eq!(Bf16::from_f32(half), Bf16(bits + (bits & 1)));
            assert_eq!(Bf16::from_f32(f32::from_bits(half.to_bits() + 1)), Bf16(bits + 1));
        }
    }

    #[test]
    fn from_says_the_same() {
        assert_eq!(f32::from(F16(0xc000)), -2.0);
        assert_eq!(f32::from(Bf16(0x3dcd)), Bf16::from_f32(0.1).to_f32());
    }

    #[test]
    fn what_is_too_large_becomes_infinity() {
        assert_eq!(F16::from_f32(65519.9), F16(0x7bff));
        assert_eq!(F16::from_f32(65520.0), F16(0x7c00));
        assert_eq!(F16::from_f32(f32::NEG_INFINITY), F16(0xfc00));
        assert_eq!(Bf16::from_f32(f32::MAX), Bf16(0x7f80));
    }
}
