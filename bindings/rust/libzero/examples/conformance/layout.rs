//! Constants, and where fields of structs lie.

use libzero::sys::{layout, CONSTANTS};

use crate::lines::line;

pub fn print() {
    for (name, value) in CONSTANTS {
        line(&format!("constant {name}"), value);
    }
    for (structure, field, offset, nbytes) in layout() {
        let field = if field.is_empty() { "*" } else { field };
        line(&format!("field {structure} {field}"), format!("{offset} {nbytes}"));
    }
}
