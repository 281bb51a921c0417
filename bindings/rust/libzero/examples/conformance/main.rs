//! Prints a line for each scenario of bindings/conformance/README.md; every language prints the same.

mod buffers;
mod groups;
mod layout;
mod library;
mod lines;
mod misuse;
mod optimizers;
mod ranks;
mod saves;
mod servers;
mod training;
mod values;

fn main() -> libzero::Result<()> {
    library::print()?;
    groups::print()?;
    buffers::print()?;
    servers::print()?;
    optimizers::print()?;
    saves::print()?;
    misuse::print()?;
    layout::print();
    Ok(())
}
