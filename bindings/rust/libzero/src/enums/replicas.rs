//! What replicas send to one another, and to which.

use libzero_sys as sys;

use super::c_enum;

c_enum! {
    /// The form of values that travel between ranks ([`Key::GradCode`](crate::Key::GradCode)).
    LineCode {
        /// In fp32.
        None = ZERO_CODE_NONE,
        /// E4M3 with a scale per 256 elements.
        F8 = ZERO_CODE_F8,
        /// Integers to 127 with a scale per 256 elements.
        I8 = ZERO_CODE_I8,
        /// Integers to 7 with a scale per 256 elements.
        I4 = ZERO_CODE_I4,
        /// The largest values only ([`Key::CodeTop`](crate::Key::CodeTop)).
        Top = ZERO_CODE_TOP,
        /// Factors of matrices ([`Key::CodeRank`](crate::Key::CodeRank)).
        LowRank = ZERO_CODE_LOW_RANK,
        /// Signs and mean magnitudes only.
        Sign = ZERO_CODE_SIGN,
    }
}

c_enum! {
    /// What becomes of the rounding errors of coded gradients ([`Key::Residual`](crate::Key::Residual)).
    Residual {
        /// They are dropped.
        None = ZERO_RESIDUAL_NONE,
        /// They are kept in fp32 and added to the gradients of the next step.
        F32 = ZERO_RESIDUAL_F32,
    }
}

c_enum! {
    /// The replicas that the end of a period averages ([`Key::Neighbours`](crate::Key::Neighbours)).
    Neighbours {
        /// All of them.
        None = ZERO_NEIGHBOURS_NONE,
        /// Each with the one before it and the one behind it.
        Ring = ZERO_NEIGHBOURS_RING,
    }
}
