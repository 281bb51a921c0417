//! How results are written.

use std::fmt::Display;

use libzero::Result;

use crate::values::Value;

/// One line of a scenario.
pub fn line(name: &str, text: impl Display) {
    println!("{name}: {text}");
}

/// Several results, in their order.
pub fn join<T: Display>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<_> = texts.into_iter().map(|text| text.to_string()).collect();
    texts.join(" ")
}

/// An error with its text.
pub fn error<T>(outcome: Result<T>) -> String {
    outcome.err().map_or("ZERO_OK".into(), |error| error.to_string())
}

/// An error without its text.
pub fn status<T>(outcome: Result<T>) -> &'static str {
    outcome.err().map_or("ZERO_OK", |error| error.name())
}

/// A double as its bits.
pub fn bits(value: f64) -> String {
    format!("{:016x}", value.to_bits())
}

/// An array as the FNV-1a hash of its bytes.
pub fn hash<T: Value>(values: &[T]) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = values.iter().flat_map(|value| value.bytes());
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("#{hash:016x}")
}
