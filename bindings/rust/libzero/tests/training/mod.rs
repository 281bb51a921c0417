//! What tests of optimizers share: configs, a small optimizer, its values.

use libzero::{Config, Group, Key, Optimizer, Param, Slot, Source};

pub const COUNT: usize = 600;

pub fn config(keys: &[(Key, i64)], algorithm: &str) -> Config {
    let mut config = Config::new().unwrap();
    config.set(Key::Algorithm, algorithm).unwrap();
    for &(key, value) in keys {
        config.set(key, value).unwrap();
    }
    config
}

/// Plain descent at rate 1: each step subtracts the gradient.
pub fn descent(keys: &[(Key, i64)]) -> Config {
    let mut config = config(keys, "sgd");
    config.set(Key::Lr, 1.0).unwrap();
    config
}

/// An optimizer with one parameter of COUNT elements, all 1, ready for steps.
pub fn begun(group: &Group, config: &Config) -> (Optimizer, Param<f32>) {
    let mut optimizer = Optimizer::new(group, Some(config)).unwrap();
    let w = optimizer.add_param::<f32>("w", &[20, 30], None).unwrap();
    optimizer.seal().unwrap();
    optimizer.param_mut(w).unwrap().fill(1.0);
    optimizer.begin(Source::Local).unwrap();
    (optimizer, w)
}

pub fn read(optimizer: &Optimizer, param: Param<f32>, count: usize) -> Vec<f32> {
    let mut values = vec![0.0; count];
    optimizer.read(param.id(), Slot::Param, 0, &mut values).unwrap();
    values
}
