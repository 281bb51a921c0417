//! Scenarios of the library and of configs.

use libzero::{abi_version, has_feature, version, Bounds, Code, Config, DType, Feature, Group, Key, Result};

use crate::lines::{bits, error, join, line};

const DTYPES: [DType; 7] = [DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I32, DType::I64, DType::U8];

pub fn print() -> Result<()> {
    line("version", version());
    line("abi", abi_version());
    line("status-names", join([-300, 0, 1].map(|status| Code::from_raw(status).name())));
    let sizes: Result<Vec<_>> = DTYPES.iter().map(|dtype| dtype.nbytes()).collect();
    line("dtype-sizes", join(sizes?));
    line("dtype-unknown", error(DType::Other(99).nbytes()));
    line("feature-local", i32::from(has_feature(Feature::Local)));
    line("launcher", Group::launcher()?);
    line("bounds-stage", bounds(Key::Stage)?);
    line("bounds-lr", bounds(Key::Lr)?);
    line("bounds-unknown", error(Key::Other(99999).bounds()));
    let mut config = Config::new()?;
    line("config-unknown-key", error(config.set(Key::Other(99999), 1)));
    line("config-wrong-type", error(config.set(Key::Stage, 1.0)));
    line("config-out-of-bounds", error(config.set(Key::Stage, 4)));
    line("config-string", error(config.set(Key::Algorithm, "adamw")));
    Ok(())
}

fn bounds(key: Key) -> Result<String> {
    Ok(match key.bounds()? {
        Bounds::I64 { min, max, default } => format!("1 {min} {max} {default}"),
        Bounds::F64 { min, max, default } => format!("2 {} {} {}", bits(min), bits(max), bits(default)),
        Bounds::Str => "3".into(),
    })
}
