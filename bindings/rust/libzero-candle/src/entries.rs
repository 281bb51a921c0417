//! The vars of an optimizer: their order, names, and parameters of libzero.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use candle_core::{bail, DType, Device, Result, Tensor, TensorId, Var};
use candle_nn::VarMap;
use libzero::{Bf16, Config, Key, Optimizer, Param, F16};

use crate::error::OrCandle;
use crate::settings::Settings;
use crate::values::{give, take, write};

/// A parameter of libzero in the dtype that it is kept in.
#[derive(Clone, Copy, Debug)]
enum Kind {
    F32(Param<f32>),
    F16(Param<F16>),
    Bf16(Param<Bf16>),
}

/// A var, its name, and where libzero has it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) var: Var,
    pub(crate) name: String,
    kind: Kind,
}

impl Entry {
    /// Refuses what cannot be given, before anything is.
    pub(crate) fn check(&self, grad: &Tensor) -> Result<()> {
        let Entry { var, name, .. } = self;
        if grad.dtype() == var.dtype() && grad.shape() == var.shape() && grad.device().is_cpu() {
            return Ok(());
        }
        bail!(
            "the gradient of {name} is {:?} of {:?} on {:?}, but the var is {:?} of {:?} on {:?}",
            grad.dtype(),
            grad.shape(),
            grad.device().location(),
            var.dtype(),
            var.shape(),
            var.device().location()
        )
    }

    pub(crate) fn give(&self, optimizer: &Optimizer, grad: &Tensor) -> Result<()> {
        match self.kind {
            Kind::F32(param) => give(optimizer, param, grad),
            Kind::F16(param) => give(optimizer, param, grad),
            Kind::Bf16(param) => give(optimizer, param, grad),
        }
    }

    /// Writes the var's values, or none where another rank has them. A collective.
    pub(crate) fn write(&self, optimizer: &mut Optimizer, mine: bool) -> Result<()> {
        let values = mine.then(|| self.var.as_tensor());
        match self.kind {
            Kind::F32(param) => write(optimizer, param, values),
            Kind::F16(param) => write(optimizer, param, values),
            Kind::Bf16(param) => write(optimizer, param, values),
        }
    }

    /// Copies libzero's values into the var. In stage 3 a collective.
    pub(crate) fn take(&self, optimizer: &Optimizer) -> Result<()> {
        match self.kind {
            Kind::F32(param) => take(optimizer, param, &self.var),
            Kind::F16(param) => take(optimizer, param, &self.var),
            Kind::Bf16(param) => take(optimizer, param, &self.var),
        }
    }
}

/// Registers the float vars with an optimizer that is not sealed yet. As candle's optimizers it passes over others.
pub(crate) fn register(optimizer: &mut Optimizer, vars: Vec<Var>, settings: &Settings) -> Result<Vec<Entry>> {
    for (keys, _) in &settings.sets {
        optimizer.add_set(keys).or_candle()?;
    }
    let floats = vars.into_iter().filter(|var| var.dtype().is_float()).collect();
    let named = in_order(floats, settings.names.as_ref())?;
    named.into_iter().map(|(name, var)| add(optimizer, name, var, settings)).collect()
}

fn add(optimizer: &mut Optimizer, name: String, var: Var, settings: &Settings) -> Result<Entry> {
    if !matches!(var.device(), Device::Cpu) {
        bail!("{name} is on {:?}, but this crate reaches memory of the host alone; make the model on Device::Cpu", var.device().location())
    }
    let mut config = Config::new().or_candle()?;
    if let Some(set) = settings.sets.iter().position(|(_, belongs)| belongs(&name, &var)) {
        config.set(Key::Set, set + 1).or_candle()?;
    }
    let shape: Vec<i64> = var.dims().iter().map(|&size| size as i64).collect();
    let kind = match var.dtype() {
        DType::F64 if !settings.f64_as_f32 => {
            bail!("{name} is F64, but libzero keeps parameters as F32, F16 or BF16; make it F32, or say Settings::f64_as_f32")
        }
        DType::F32 | DType::F64 => Kind::F32(optimizer.add_param(&name, &shape, Some(&config)).or_candle()?),
        DType::F16 => Kind::F16(optimizer.add_param(&name, &shape, Some(&config)).or_candle()?),
        DType::BF16 => Kind::Bf16(optimizer.add_param(&name, &shape, Some(&config)).or_candle()?),
        other => bail!("{name} is {other:?}, but libzero keeps parameters as F32, F16 or BF16"),
    };
    Ok(Entry { var, name, kind })
}

/// The vars with their names, in an order that is the same on all ranks: `VarMap::all_vars` has another one in each process.
fn in_order(mut vars: Vec<Var>, varmap: Option<&VarMap>) -> Result<Vec<(String, Var)>> {
    vars.sort_by_key(|var| number(var.id()));
    if let Some(twice) = vars.windows(2).find(|pair| pair[0].id() == pair[1].id()) {
        bail!("a var of shape {:?} is given twice, but its gradient counts once; give each var once", twice[0].shape())
    }
    let Some(varmap) = varmap else {
        return Ok(vars.into_iter().enumerate().map(|(index, var)| (format!("var.{index}"), var)).collect());
    };
    let names = names(varmap);
    let mut named = Vec::with_capacity(vars.len());
    for var in vars {
        match names.get(&var.id()) {
            Some(name) => named.push((name.clone(), var)),
            None => bail!("a var of shape {:?} is not in the VarMap of Settings::names", var.shape()),
        }
    }
    named.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(named)
}

fn names(varmap: &VarMap) -> HashMap<TensorId, String> {
    let vars = varmap.data().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    vars.iter().map(|(name, var)| (var.id(), name.clone())).collect()
}

/// The number in a `TensorId`, which counts the tensors that the process has created. candle shows it to hashers only.
fn number(id: TensorId) -> u64 {
    struct Number(u64);
    impl Hasher for Number {
        fn write(&mut self, bytes: &[u8]) {
            unreachable!("a TensorId is a usize, but it hashes {bytes:?}")
        }
        fn write_usize(&mut self, number: usize) {
            self.0 = number as u64;
        }
        fn finish(&self) -> u64 {
            self.0
        }
    }
    let mut hasher = Number(0);
    id.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(count: usize) -> Vec<Var> {
        (0..count).map(|size| Var::zeros(size, DType::F32, &Device::Cpu).unwrap()).collect()
    }

    #[test]
    fn vars_are_ordered_as_they_were_created() {
        let created = vars(300);
        let mut given = created.clone();
        given.reverse();
        given.swap(3, 200);
        for (index, (name, var)) in in_order(given, None).unwrap().into_iter().enumerate() {
            assert_eq!(var.id(), created[index].id());
            assert_eq!(name, format!("var.{index}"));
        }
    }

    #[test]
    fn a_var_that_is_given_twice_is_an_error() {
        let mut given = vars(3);
        given.push(given[1].clone());
        let error = in_order(given, None).unwrap_err().to_string();
        assert!(error.contains("a var of shape [1] is given twice"), "{error}");
    }
}
