//! The file of losses: one per line, with nine significant digits as C's %.9g writes them.

use std::fs::File;
use std::io::Write;

use crate::problem::Result;

const DIGITS: i32 = 9;

pub struct Losses {
    file: Option<File>,
}

impl Losses {
    /// Without a path nothing is written.
    pub fn create(path: &str) -> Result<Self> {
        if path.is_empty() {
            return Ok(Losses { file: None });
        }
        let file = File::create(path).map_err(|problem| format!("{path}: {problem}"))?;
        Ok(Losses { file: Some(file) })
    }

    pub fn write(&mut self, loss: f64) -> Result<()> {
        match &mut self.file {
            Some(file) => Ok(writeln!(file, "{}", general(loss))?),
            None => Ok(()),
        }
    }
}

/// %.9g of a number.
fn general(value: f64) -> String {
    let scientific = format!("{value:.*e}", DIGITS as usize - 1);
    let (mantissa, exponent) = match scientific.split_once('e') {
        Some(parts) => parts,
        None => return scientific, // not finite
    };
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if (-4..DIGITS).contains(&exponent) {
        return shorten(&format!("{value:.*}", (DIGITS - 1 - exponent) as usize)).into();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", shorten(mantissa), exponent.abs())
}

/// Without the zeros at the end of its fraction.
fn shorten(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}
