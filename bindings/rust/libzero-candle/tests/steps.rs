//! Steps against candle's own optimizers, and against the formulas of the algorithms.

mod ranks;

use candle_core::{DType, Device, Tensor, Var};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, SGD};
use libzero_candle::libzero::{Config, Key};
use libzero_candle::{Settings, ShardedOptimizer};
use ranks::{all_values, alone, descent, distance, grads, not_empty, numbers, staged, values, var, vars};

const STEPS: u64 = 20;
/// Values are of size 1, AdamW moves them by 0.01 a step, and both sides round to f32.
const ROUNDING: f64 = 1e-6;

fn params() -> ParamsAdamW {
    ParamsAdamW { lr: 0.01, weight_decay: 0.1, ..ParamsAdamW::default() }
}

/// candle's own AdamW, with the mean of the gradients that `size` ranks have.
fn joined(size: u64) -> Vec<f64> {
    let vars = vars();
    let mut optimizer = AdamW::new(not_empty(&vars), params()).unwrap();
    for step in 0..STEPS {
        let mut mean = ranks::no_grads();
        let of_ranks: Vec<_> = (0..size).map(|rank| grads(size * step + rank, &vars)).collect();
        for var in &vars {
            let sum = of_ranks[1..].iter().fold(of_ranks[0].get(var).unwrap().clone(), |sum, more| (sum + more.get(var).unwrap()).unwrap());
            mean.insert(var, (sum / size as f64).unwrap());
        }
        optimizer.step(&mean).unwrap();
    }
    all_values(&vars)
}

#[test]
fn every_stage_follows_candles_adamw_on_the_mean_gradient_with_the_same_bits() {
    for size in [1, 2, 3] {
        let expected = joined(size);
        let mut bits: Vec<Vec<f64>> = Vec::new();
        for stage in 0..4 {
            bits.extend(ranks::run(size as usize, |group, rank| {
                let vars = vars();
                let settings = staged(Settings::adamw(params()).unwrap().group(group), stage);
                let mut optimizer = ShardedOptimizer::new(vars.clone(), settings).unwrap();
                for step in 0..STEPS {
                    let grads = grads(size * step + rank as u64, &vars);
                    if step % 2 == 0 {
                        optimizer.step(&grads).unwrap();
                    } else {
                        optimizer.step_owned(grads).unwrap();
                    }
                }
                all_values(&vars)
            }));
        }
        let error = distance(&bits[0], &expected);
        assert!(error < ROUNDING, "{size} ranks: {error}");
        assert!(distance(&expected, &all_values(&vars())) > 0.1);
        assert!(bits.iter().all(|values| *values == bits[0]), "{size} ranks");
    }
}

#[test]
fn sgd_follows_candles_within_rounding() {
    let (ours, theirs) = (vars(), vars());
    let mut optimizer = ShardedOptimizer::new(ours.clone(), Settings::new("sgd", 0.1).unwrap().group(alone())).unwrap();
    let mut reference = SGD::new(not_empty(&theirs), 0.1).unwrap();
    for step in 0..STEPS {
        optimizer.step(&grads(step, &ours)).unwrap();
        reference.step(&grads(step, &theirs)).unwrap();
    }
    let error = distance(&all_values(&ours), &all_values(&theirs));
    assert!(error < ROUNDING, "{error}");
    assert!(distance(&all_values(&ours), &all_values(&vars())) > 0.1);
}

/// One step at rate 0.1 with weight decay 0.5, from the formulas of `zero/optimizer.h` in f64.
fn first_step(algorithm: &str, p: &[f64], g: &[f64]) -> Vec<f64> {
    const LR: f64 = 0.1;
    const DECAY: f64 = 0.5;
    let norm = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>().sqrt();
    let pairs = || p.iter().zip(g);
    match algorithm {
        "sgd" => pairs().map(|(p, g)| p - LR * (g + DECAY * p)).collect(),
        "adam" | "adagrad" => pairs().map(|(p, g)| p - LR * (g + DECAY * p).signum()).collect(),
        "adamw" | "lion" => pairs().map(|(p, g)| p * (1.0 - LR * DECAY) - LR * g.signum()).collect(),
        "lamb" => {
            let r: Vec<f64> = pairs().map(|(p, g)| g / (g.abs() + 1e-6) + DECAY * p).collect();
            let trust = norm(p) / norm(&r);
            p.iter().zip(&r).map(|(p, r)| p - LR * trust * r).collect()
        }
        other => panic!("{other}"),
    }
}

#[test]
fn algorithms_are_chosen_by_name() {
    for algorithm in ["sgd", "adam", "adamw", "adagrad", "lion", "lamb"] {
        let w = var(1, (9, 40), DType::F32);
        let before = values(&w);
        let settings = Settings::new(algorithm, 0.1).unwrap().set(Key::WeightDecay, 0.5).unwrap().group(alone());
        let mut optimizer = ShardedOptimizer::new(vec![w.clone()], settings).unwrap();
        let grads = grads(3, std::slice::from_ref(&w));
        optimizer.step(&grads).unwrap();
        let expected = first_step(algorithm, &before, &values(grads.get(&w).unwrap()));
        let error = distance(&values(&w), &expected);
        assert!(error < 1e-4, "{algorithm}: {error}");
    }
}

#[test]
fn a_parameter_set_gives_matrices_to_muon() {
    let (matrix, bias) = (var(1, (4, 6), DType::F32), var(2, 6, DType::F32));
    let (matrix_before, bias_before) = (values(&matrix), values(&bias));
    let mut muon = Config::new().unwrap();
    muon.set(Key::Algorithm, "muon").unwrap().set(Key::Lr, 0.5).unwrap().set(Key::WeightDecay, 0.0).unwrap();
    let settings = descent(alone()).param_set(muon, |_, var| var.rank() == 2);
    let mut optimizer = ShardedOptimizer::new(vec![matrix.clone(), bias.clone()], settings).unwrap();
    let grads = grads(1, &[matrix.clone(), bias.clone()]);
    optimizer.step(&grads).unwrap();
    let bias_grad = values(grads.get(&bias).unwrap());
    let expected: Vec<f64> = bias_before.iter().zip(bias_grad).map(|(p, g)| p - g).collect();
    assert!(distance(&values(&bias), &expected) < ROUNDING);
    // The rows of an orthogonalised update are of length 1, nearly: Newton-Schulz leaves 0.7 to 1.2.
    let moved: Vec<f64> = values(&matrix).iter().zip(&matrix_before).map(|(after, before)| after - before).collect();
    for row in moved.chunks(6) {
        let length = row.iter().map(|x| x * x).sum::<f64>().sqrt() / 0.5;
        assert!((0.5..1.3).contains(&length), "{length}");
    }
}

#[test]
fn the_norm_is_clipped() {
    let w = var(1, 100, DType::F32);
    let before = values(&w);
    let mut optimizer = ShardedOptimizer::new(vec![w.clone()], descent(alone()).set(Key::ClipNorm, 0.5).unwrap()).unwrap();
    let grads = grads(1, std::slice::from_ref(&w));
    optimizer.step(&grads).unwrap();
    let gradient = values(grads.get(&w).unwrap());
    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    assert!(norm > 1.0);
    assert!((optimizer.last_step().unwrap().grad_norm - norm).abs() < 1e-6);
    let expected: Vec<f64> = before.iter().zip(gradient).map(|(p, g)| p - g * 0.5 / norm).collect();
    assert!(distance(&values(&w), &expected) < ROUNDING);
}

#[test]
fn gradients_may_be_views_of_any_strides() {
    for (gradient, contiguous) in [
        (numbers(2, (9, 5)).narrow(0, 1, 7).unwrap().t().unwrap(), false),
        (numbers(2, (9, 7)).narrow(0, 3, 5).unwrap(), true),
        (Tensor::new(0.5f32, &Device::Cpu).unwrap().broadcast_as((5, 7)).unwrap(), false),
    ] {
        let w = var(1, (5, 7), DType::F32);
        let before = values(&w);
        assert_eq!(gradient.is_contiguous(), contiguous);
        let mut grads = ranks::no_grads();
        grads.insert(&w, gradient.clone());
        let mut optimizer = ShardedOptimizer::new(vec![w.clone()], descent(alone())).unwrap();
        optimizer.step(&grads).unwrap();
        let expected: Vec<f64> = before.iter().zip(values(&gradient)).map(|(p, g)| p - g).collect();
        assert!(distance(&values(&w), &expected) < ROUNDING);
    }
}

#[test]
fn a_var_without_gradient_stays_and_one_rank_suffices_to_move_it() {
    ranks::run(2, |group, rank| {
        let (never, sometimes, always) = (var(1, 40, DType::F32), var(2, 40, DType::F32), var(3, 40, DType::F32));
        let vars = vec![never.clone(), sometimes.clone(), always.clone()];
        let before: Vec<_> = vars.iter().map(|var| values(var)).collect();
        let settings = descent(group).set(Key::WeightDecay, 0.25).unwrap();
        let mut optimizer = ShardedOptimizer::new(vars.clone(), settings).unwrap();
        let ones = Tensor::ones(40, DType::F32, &Device::Cpu).unwrap();
        let mut grads = ranks::no_grads();
        grads.insert(&always, ones.clone());
        if rank == 1 {
            grads.insert(&sometimes, ones);
        }
        optimizer.step_owned(grads).unwrap();
        let expected = |index: usize, gradient: f64| before[index].iter().map(|p| p - gradient - 0.25 * p).collect::<Vec<_>>();
        assert_eq!(values(&never), before[0]);
        assert!(distance(&values(&sometimes), &expected(1, 0.5)) < ROUNDING);
        assert!(distance(&values(&always), &expected(2, 1.0)) < ROUNDING);
    });
}

#[test]
fn ranks_begin_with_the_values_of_rank_0_whatever_the_order_of_their_vars() {
    let values = ranks::run(2, |group, rank| {
        let vars: Vec<Var> = (0..9).map(|index| var(100 * rank as u64 + index, 8, DType::F32)).collect();
        let mut given = vars.clone();
        if rank == 1 {
            given.reverse();
        }
        let mut optimizer = ShardedOptimizer::new(given, descent(group)).unwrap();
        let begun = all_values(&vars);
        optimizer.step(&grads(1, &vars)).unwrap();
        (begun, all_values(&vars))
    });
    let first: Vec<f64> = (0..9).flat_map(|index| ranks::values(&var(index, 8, DType::F32))).collect();
    assert_eq!(values[0].0, first);
    assert_eq!(values[0], values[1]);
    assert!(distance(&values[0].1, &first) > 0.1);
}

#[test]
fn values_that_the_program_sets_are_taken_by_refresh() {
    let values = ranks::run(2, |group, rank| {
        let w = var(1, 10, DType::F32);
        let mut optimizer = ShardedOptimizer::new(vec![w.clone()], descent(group)).unwrap();
        w.set(&Tensor::full(rank as f32 + 5.0, 10, &Device::Cpu).unwrap()).unwrap();
        optimizer.refresh().unwrap();
        let mut grads = ranks::no_grads();
        grads.insert(&w, Tensor::ones(10, DType::F32, &Device::Cpu).unwrap());
        optimizer.step_owned(grads).unwrap();
        values(&w)
    });
    assert_eq!(values, [[4.0; 10]; 2]);
}

#[test]
fn the_learning_rate_is_that_of_the_settings_until_it_is_set() {
    let w = Var::zeros(2, DType::F32, &Device::Cpu).unwrap();
    let mut optimizer = ShardedOptimizer::new(vec![w.clone()], Settings::new("sgd", 0.5).unwrap().group(alone())).unwrap();
    assert_eq!(optimizer.learning_rate(), 0.5);
    optimizer.backward_step(&w.sum_all().unwrap()).unwrap();
    assert_eq!(values(&w), [-0.5, -0.5]);
    optimizer.set_learning_rate(2.0);
    assert_eq!(optimizer.learning_rate(), 2.0);
    optimizer.backward_step(&w.sum_all().unwrap()).unwrap();
    assert_eq!(values(&w), [-2.5, -2.5]);
    optimizer.set_f64(0, Key::Lr, 1.0).unwrap();
    assert_eq!(optimizer.learning_rate(), 1.0);
    optimizer.set_learning_rate(-1.0);
    let error = optimizer.backward_step(&w.sum_all().unwrap()).unwrap_err().to_string();
    assert!(error.contains("ZERO_KEY_LR"), "{error}");
}

#[test]
fn a_loss_scale_changes_no_bits_and_an_overflow_skips_the_step() {
    let (scaled, plain) = (var(1, 30, DType::F32), var(1, 30, DType::F32));
    let settings = descent(alone()).set(Key::LossScaleDynamic, 1).unwrap();
    let mut optimizer = ShardedOptimizer::new(vec![scaled.clone()], settings).unwrap();
    let mut reference = ShardedOptimizer::new(vec![plain.clone()], descent(alone())).unwrap();
    let loss = |var: &Var| (var.sqr().unwrap().sum_all().unwrap() * 0.1).unwrap();
    assert_eq!((optimizer.loss_scale(), reference.loss_scale()), (65536.0, 1.0));
    optimizer.backward_step(&loss(&scaled)).unwrap();
    reference.backward_step(&loss(&plain)).unwrap();
    assert_eq!(values(&scaled), values(&plain));
    optimizer.backward_step(&(loss(&scaled) * 1e38).unwrap()).unwrap();
    assert!(optimizer.last_step().unwrap().skipped);
    assert_eq!(optimizer.loss_scale(), 32768.0);
    assert_eq!(values(&scaled), values(&plain));
}

#[test]
fn ranks_share_a_batch() {
    ranks::run(3, |group, rank| {
        let optimizer = ShardedOptimizer::new(vars(), descent(group)).unwrap();
        let batch = Tensor::arange(0f32, 12.0, &Device::Cpu).unwrap().reshape((6, 2)).unwrap();
        let first = 4.0 * rank as f64;
        assert_eq!(values(&optimizer.share(&batch).unwrap()), [first, first + 1.0, first + 2.0, first + 3.0]);
        let error = optimizer.share(&batch.narrow(0, 0, 4).unwrap()).unwrap_err().to_string();
        assert!(error.contains("4 rows, which 3 ranks cannot share"), "{error}");
    });
}
