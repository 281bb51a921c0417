//! The command line: options with a value, taken out one by one.

use std::fmt::Display;
use std::str::FromStr;

use crate::problem::Result;

pub struct Arguments {
    rest: Vec<String>,
}

impl Arguments {
    pub fn new(arguments: impl Iterator<Item = String>) -> Self {
        Arguments { rest: arguments.collect() }
    }

    /// The value of an option, or the default where it is not given.
    pub fn value<T: FromStr>(&mut self, name: &str, default: T) -> Result<T>
    where
        T::Err: Display,
    {
        let place = match self.rest.iter().position(|argument| argument == name) {
            Some(place) => place,
            None => return Ok(default),
        };
        if place + 1 == self.rest.len() {
            return Err(format!("{name} needs a value").into());
        }
        let value = self.rest.drain(place..place + 2).nth(1).expect("two were taken");
        value.parse().map_err(|problem| format!("{name} {value}: {problem}").into())
    }

    /// A number above 0.
    pub fn count(&mut self, name: &str, default: usize) -> Result<usize> {
        match self.value(name, default)? {
            0 => Err(format!("{name} must be above 0").into()),
            count => Ok(count),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.rest.iter().any(|argument| argument == name)
    }

    /// An error where something was not taken.
    pub fn finish(self) -> Result<()> {
        match self.rest.first() {
            Some(argument) => Err(format!("unexpected argument '{argument}'").into()),
            None => Ok(()),
        }
    }
}
