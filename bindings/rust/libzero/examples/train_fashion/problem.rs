//! What ends the program: one line of text, whatever the error was.

use std::fmt::{Debug, Display, Formatter};

pub type Result<T> = std::result::Result<T, Problem>;

pub struct Problem {
    pub text: String,
}

impl<E: Display> From<E> for Problem {
    fn from(error: E) -> Self {
        Problem { text: error.to_string() }
    }
}

/// As `main` shows it.
impl Debug for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
