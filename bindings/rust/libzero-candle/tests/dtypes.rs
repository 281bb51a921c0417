//! Vars of every float dtype, and what is refused.

mod ranks;

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::Optimizer;
use libzero_candle::libzero::{Group, Key, Master};
use libzero_candle::{Settings, ShardedOptimizer};
use ranks::{alone, descent, grads, staged, values, var};

/// Five steps of descent at rate 0.1 on two ranks; the values of each rank.
fn trained(dtype: DType, stage: i32, adapt: impl Fn(Settings) -> Settings + Sync) -> Vec<Vec<f64>> {
    ranks::run(2, |group, rank| {
        let w = var(1, (3, 200), dtype);
        let settings = adapt(staged(Settings::new("sgd", 0.1).unwrap().group(group), stage));
        let mut optimizer = ShardedOptimizer::new(vec![w.clone()], settings).unwrap();
        for step in 0..5 {
            optimizer.step_owned(grads(2 * step + rank as u64, std::slice::from_ref(&w))).unwrap();
        }
        assert_eq!(w.dtype(), dtype);
        values(&w)
    })
}

/// The same element by element: sums in f32, gradients in the var's dtype, masters in f32, each update rounded once.
fn expected(dtype: DType) -> Vec<f64> {
    let w = var(1, (3, 200), dtype);
    let rounded = |values: Vec<f32>| ranks::values(&Tensor::new(values, &Device::Cpu).unwrap().to_dtype(dtype).unwrap());
    let mut master: Vec<f32> = values(&w).iter().map(|&value| value as f32).collect();
    for step in 0..5 {
        let gradient = |rank: u64| values(grads(2 * step + rank, std::slice::from_ref(&w)).get(&w).unwrap());
        let mean = gradient(0).iter().zip(gradient(1)).map(|(a, b)| (*a as f32 + b as f32) / 2.0).collect();
        for (master, gradient) in master.iter_mut().zip(rounded(mean)) {
            *master = (-0.1f32).mul_add(gradient as f32, *master);
        }
    }
    rounded(master)
}

#[test]
fn vars_of_16_bits_are_updated_from_masters_with_the_bits_of_the_formula() {
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        for stage in 0..4 {
            let expected = expected(dtype);
            let found = trained(dtype, stage, |settings| settings);
            assert!(found.iter().all(|values| *values == expected), "{dtype:?} in stage {stage}");
        }
    }
}

#[test]
fn a_master_may_be_left_out() {
    let without = trained(DType::BF16, 3, |settings| settings.set(Key::Master, Master::None).unwrap());
    assert!(without[0] != expected(DType::BF16));
    assert!(without[0] == without[1]);
}

#[test]
fn vars_may_be_kept_as_codes_of_8_bits() {
    for dtype in [DType::F32, DType::BF16] {
        let kept = |stage| trained(dtype, stage, |settings| settings.set(Key::ParamDtype, libzero_candle::libzero::DType::F8E4M3).unwrap());
        let first = kept(3);
        // Codes have 3 bits behind the first, so their error is at most a sixteenth of the value, or of the smallest normal one.
        for (value, exact) in first[0].iter().zip(expected(DType::F32)) {
            assert!((value - exact).abs() <= exact.abs() / 14.0 + 0.01, "{value} for {exact}");
        }
        assert!((0..3).all(|stage| kept(stage) == first), "{dtype:?}");
    }
}

#[test]
fn f64_vars_are_kept_as_f32_when_the_settings_say_so() {
    let as_f32 = trained(DType::F64, 3, Settings::f64_as_f32);
    assert!(as_f32.iter().all(|values| *values == expected(DType::F32)));
    let refused = ShardedOptimizer::new(vec![var(1, 3, DType::F64)], descent(alone())).unwrap_err().to_string();
    assert!(refused.contains("var.0 is F64, but libzero keeps parameters as F32, F16 or BF16"), "{refused}");
    assert!(refused.contains("Settings::f64_as_f32"), "{refused}");
}

#[test]
fn a_var_may_change_its_values_but_not_its_gradients_dtype() {
    let w = var(1, 3, DType::F32);
    let mut optimizer = ShardedOptimizer::new(vec![w.clone()], descent(alone())).unwrap();
    let mut wrong = ranks::no_grads();
    for gradient in [Tensor::ones(3, DType::F64, &Device::Cpu).unwrap(), Tensor::ones(4, DType::F32, &Device::Cpu).unwrap()] {
        wrong.insert(&w, gradient);
        let error = optimizer.step(&wrong).unwrap_err().to_string();
        assert!(error.contains("the gradient of var.0 is"), "{error}");
    }
    optimizer.step_owned(grads(1, std::slice::from_ref(&w))).unwrap();
    assert_eq!(optimizer.last_step().unwrap().step, 1);
}

#[test]
fn vars_that_are_no_floats_are_passed_over() {
    let counter = Var::zeros(3, DType::I64, &Device::Cpu).unwrap();
    let w = Var::zeros(1, DType::F32, &Device::Cpu).unwrap();
    let mut optimizer = ShardedOptimizer::new(vec![counter.clone(), w.clone()], descent(alone())).unwrap();
    optimizer.backward_step(&w.sum_all().unwrap()).unwrap();
    assert_eq!(values(&w), [-1.0]);
    assert_eq!(values(&counter), [0.0; 3]);
}

#[test]
fn an_optimizer_without_vars_steps() {
    let mut optimizer = ShardedOptimizer::empty(descent(alone())).unwrap();
    optimizer.backward_step(&Tensor::zeros((), DType::F32, &Device::Cpu).unwrap()).unwrap();
}

#[test]
fn errors_have_libzeros_text() {
    let unknown =
        Settings::new("adamax", 0.1).and_then(|settings| ShardedOptimizer::new(vec![var(1, 3, DType::F32)], settings.group(alone())));
    let text = unknown.unwrap_err().to_string();
    assert!(text.contains("ZERO_E_") && text.contains("adamax"), "{text}");
    let text = descent(alone()).set(Key::Stage, 4).unwrap_err().to_string();
    assert!(text.contains("ZERO_KEY_STAGE"), "{text}");
    let text = descent(alone()).set(Key::GradDtype, 1).unwrap_err().to_string();
    assert!(text.contains("ZERO_KEY_GRAD_DTYPE"), "{text}");
}

#[test]
fn ranks_with_other_models_are_told_what_differs() {
    let texts = ranks::run(2, |group: Group, rank| {
        let vars = vec![var(1, 3 + rank, DType::F32)];
        ShardedOptimizer::new(vars, descent(group)).unwrap_err().to_string()
    });
    for text in texts {
        assert!(text.contains("ZERO_E_MISMATCH") && text.contains("var.0"), "{text}");
    }
}

#[test]
fn a_rank_that_leaves_is_an_error_of_the_others_and_vars_keep_their_values() {
    let outcomes = ranks::run(2, |group, rank| {
        let w = var(1, 300, DType::F32);
        let mut optimizer = ShardedOptimizer::new(vec![w.clone()], descent(group)).unwrap();
        if rank == 1 {
            return None;
        }
        let before = values(&w);
        let error = optimizer.step_owned(grads(1, std::slice::from_ref(&w))).unwrap_err();
        assert!(values(&w) == before);
        Some(error.to_string())
    });
    let text = outcomes[0].as_ref().unwrap();
    assert!(text.contains("ZERO_E_PEER_LEFT"), "{text}");
}
