//! Optimizers: steps, parameters, gradients, what is registered and told, over ranks that are threads.

mod ranks;
mod training;

use libzero::{Bf16, Code, Config, DType, Divisor, Group, Key, Memory, MicroStep, Operation, Optimizer, Slot, Source, StepResult, F16};

use training::*;

#[test]
fn every_stage_takes_the_same_steps() {
    for stage in 0..=3 {
        ranks::run(3, |group, rank| {
            let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, stage)]));
            for step in 1..=3 {
                let mut gradient = optimizer.grad(w).unwrap();
                assert!(!gradient.accumulates());
                gradient.fill(rank as f32);
                gradient.ready().unwrap();
                assert_eq!(optimizer.step().unwrap().step, step);
            }
            assert_eq!(optimizer.param(w).unwrap()[..], [1.0 - 3.0; COUNT]);
        });
    }
}

#[test]
fn several_views_live_at_the_same_time() {
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, Some(&descent(&[]))).unwrap();
    let w = optimizer.add_param::<f32>("w", &[3], None).unwrap();
    let b = optimizer.add_param::<f32>("b", &[2], None).unwrap();
    optimizer.seal().unwrap();
    {
        let (mut w, mut b) = (optimizer.param_mut(w).unwrap(), optimizer.param_mut(b).unwrap());
        w.fill(1.0);
        b.fill(2.0);
    }
    optimizer.begin(Source::Root).unwrap();
    {
        let (w_again, w_view, b_view) = (optimizer.param(w).unwrap(), optimizer.param(w).unwrap(), optimizer.param(b).unwrap());
        let (mut dw, mut db) = (optimizer.grad(w).unwrap(), optimizer.grad(b).unwrap());
        dw.copy_from_slice(&w_view);
        db.copy_from_slice(&b_view);
        dw.ready().unwrap();
        db.ready().unwrap();
        assert_eq!(w_view[..], w_again[..]);
    }
    optimizer.step().unwrap();
    assert_eq!(optimizer.param(w).unwrap()[..], [0.0; 3]);
    assert_eq!(optimizer.param(b).unwrap()[..], [0.0; 2]);
}

#[test]
fn a_view_lends_its_slice_to_other_threads() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = begun(&group, &descent(&[]));
    {
        let values = optimizer.param(w).unwrap();
        let values: &[f32] = &values;
        let mut gradient = optimizer.grad(w).unwrap();
        std::thread::scope(|scope| {
            for (to, from) in gradient.chunks_mut(100).zip(values.chunks(100)) {
                scope.spawn(move || to.copy_from_slice(from));
            }
        });
        gradient.ready().unwrap();
    }
    optimizer.step().unwrap();
    assert_eq!(optimizer.param(w).unwrap()[..], [0.0; COUNT]);
}

#[test]
fn param_into_copies_in_every_stage() {
    for stage in 0..=3 {
        ranks::run(2, |group, _| {
            let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, stage)]));
            let mut values = [0.0; COUNT];
            optimizer.param_into(w, &mut values).unwrap();
            assert_eq!(values, [1.0; COUNT]);
            let view = optimizer.param(w).unwrap();
            optimizer.param_into(w, &mut values).unwrap();
            assert_eq!(view[..], values);
            drop(view);
            optimizer.step().unwrap();
        });
    }
}

#[test]
fn gradients_come_from_the_callers_memory_in_ranges() {
    ranks::run(2, |group, rank| {
        let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, 2)]));
        let gradient = [rank as f32; COUNT];
        optimizer.grad_ready(w, 400, &gradient[400..]).unwrap();
        optimizer.grad_ready(w, 0, &gradient[..400]).unwrap();
        optimizer.step().unwrap();
        assert_eq!(read(&optimizer, w, COUNT), [0.5; COUNT]);
    });
}

#[test]
fn gradients_of_many_tensors_in_one_call_have_the_bits_of_single_calls() {
    let gradient = |rank: usize, step: usize, count: usize| -> Vec<f32> {
        (0..count).map(|i| ((i * 131 + step * 17 + rank * 7) % 257) as f32 / 100.0 - 1.28).collect()
    };
    let trained = |stage: i64, bulk: bool| {
        ranks::run(3, |group, rank| {
            let mut optimizer = Optimizer::new(&group, Some(&descent(&[(Key::Stage, stage), (Key::BucketBytes, 1024)]))).unwrap();
            let params: Vec<_> = [600, 0, 7].iter().map(|&n| optimizer.add_param::<f32>(&format!("p{n}"), &[n], None).unwrap()).collect();
            optimizer.seal().unwrap();
            optimizer.begin(Source::Local).unwrap();
            for step in 0..3 {
                let grads: Vec<_> = [600, 0, 7].iter().map(|&count| gradient(rank, step, count)).collect();
                let pairs: Vec<_> = params.iter().copied().zip(grads.iter().map(Vec::as_slice)).collect();
                if bulk {
                    optimizer.grads_ready(&pairs).unwrap();
                } else {
                    pairs.iter().for_each(|&(param, grad)| optimizer.grad_ready(param, 0, grad).unwrap());
                }
                assert_eq!(optimizer.step().unwrap().unfilled_count, 0);
            }
            [read(&optimizer, params[0], 600), read(&optimizer, params[2], 7)].concat()
        })
    };
    for stage in 0..=3 {
        let expected = trained(stage, false);
        assert_ne!(expected[0], [0.0; 607]);
        assert_eq!(trained(stage, true), expected, "stage {stage}");
    }
}

#[test]
fn gradients_in_one_call_end_at_the_first_error() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = begun(&group, &descent(&[]));
    let (ones, few) = ([1.0; COUNT], [1.0; COUNT - 1]);
    let code = |grads: &[(libzero::Param<f32>, &[f32])]| optimizer.grads_ready(grads).map_err(|error| error.code());
    assert_eq!(code(&[(w, &few)]), Err(Code::InvalidArgument));
    let view = optimizer.grad(w).unwrap();
    assert_eq!(code(&[(w, &ones)]), Err(Code::State));
    drop(view);
    assert_eq!(code(&[]), Ok(()));
    assert_eq!(code(&[(w, &ones), (w, &ones)]), Err(Code::State));
    optimizer.step().unwrap();
    assert_eq!(optimizer.param(w).unwrap()[..], [0.0; COUNT]);
}

#[test]
fn an_acquired_gradient_is_given_in_ranges_and_goes_with_the_last() {
    for stage in 0..=3 {
        ranks::run(2, |group, rank| {
            let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, stage)]));
            let mut gradient = optimizer.grad(w).unwrap();
            gradient.fill(rank as f32);
            gradient.ready_range(300..COUNT).unwrap();
            assert_eq!(gradient.len(), COUNT);
            assert_eq!(gradient.ready_range(299..301).unwrap_err().code(), Code::State);
            assert_eq!(gradient.len(), COUNT);
            gradient.ready_range(0..300).unwrap();
            assert_eq!(gradient[..], []);
            drop(gradient);
            assert_eq!(optimizer.grad(w).unwrap_err().code(), Code::State);
            optimizer.step().unwrap();
            assert_eq!(read(&optimizer, w, COUNT), [0.5; COUNT]);
        });
    }
}

#[test]
fn a_gradient_view_that_nobody_wrote_to_leaves_nothing_to_add_to() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = begun(&group, &descent(&[]));
    for step in 1..=2 {
        drop(optimizer.grad(w).unwrap());
        assert_eq!(optimizer.grad(w).unwrap().len(), COUNT);
        let mut gradient = optimizer.grad(w).unwrap();
        assert!(!gradient.accumulates());
        gradient.fill(1.0);
        gradient.ready().unwrap();
        optimizer.step().unwrap();
        assert_eq!(optimizer.param(w).unwrap()[..], [1.0 - step as f32; COUNT]);
    }
}

#[test]
fn what_nobody_wrote_is_zero_where_elements_come_from_elsewhere() {
    for stage in 0..=3 {
        let group = Group::alone(None).unwrap();
        let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, stage)]));
        for step in 1..=2 {
            drop(optimizer.grad(w).unwrap());
            optimizer.grad_ready(w, 0, &[1.0; COUNT / 2]).unwrap();
            let mut gradient = optimizer.grad(w).unwrap();
            assert!(gradient.accumulates());
            gradient[COUNT / 2..].iter_mut().for_each(|value| *value += 1.0);
            gradient.ready_range(COUNT / 2..COUNT).unwrap();
            drop(gradient);
            optimizer.step().unwrap();
            assert_eq!(optimizer.param(w).unwrap()[..], [1.0 - step as f32; COUNT]);
        }
    }
}

#[test]
fn sums_are_added_to_whoever_gave_them() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, 2)]));
    optimizer.micro_step(MicroStep::Local).unwrap();
    drop(optimizer.grad(w).unwrap());
    optimizer.grad_ready(w, 0, &[1.0; COUNT]).unwrap();
    optimizer.micro_step(MicroStep::Last).unwrap();
    let mut gradient = optimizer.grad(w).unwrap();
    let before = if gradient.accumulates() { gradient[0] } else { 0.0 };
    gradient.fill(before + 2.0);
    gradient.ready().unwrap();
    optimizer.step().unwrap();
    assert_eq!(optimizer.param(w).unwrap()[..], [-2.0; COUNT]);
}

#[test]
fn a_dropped_gradient_view_is_taken_up_again() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = begun(&group, &descent(&[]));
    optimizer.grad(w).unwrap().fill(2.0);
    let mut gradient = optimizer.grad(w).unwrap();
    assert!(gradient.accumulates());
    gradient.iter_mut().for_each(|value| *value += 1.0);
    gradient.ready().unwrap();
    optimizer.step().unwrap();
    assert_eq!(optimizer.param(w).unwrap()[..], [-2.0; COUNT]);
}

#[test]
fn gradients_may_have_another_type() {
    let group = Group::alone(None).unwrap();
    let mut of_all = descent(&[]);
    of_all.set(Key::GradDtype, DType::F32).unwrap();
    let mut own = Config::new().unwrap();
    own.set(Key::GradDtype, DType::F16).unwrap();
    let mut as_param = Config::new().unwrap();
    as_param.set(Key::GradDtype, 0).unwrap();
    let mut tied = Config::new().unwrap();
    tied.set(Key::TiedTo, 1).unwrap();

    let mut optimizer = Optimizer::new(&group, Some(&of_all)).unwrap();
    let a = optimizer.add_param::<Bf16>("a", &[4], None).unwrap().with_gradient::<f32>();
    let b = optimizer.add_param::<Bf16>("b", &[4], Some(&own)).unwrap().with_gradient::<F16>();
    let c = optimizer.add_param::<Bf16>("c", &[4], Some(&as_param)).unwrap();
    let d = optimizer.add_param::<Bf16>("d", &[4], Some(&tied)).unwrap().with_gradient::<F16>();
    optimizer.seal().unwrap();
    optimizer.begin(Source::Local).unwrap();
    optimizer.grad_ready(a, 0, &[0.5; 4]).unwrap();
    optimizer.grad_ready(b, 0, &[F16::from_f32(0.25); 4]).unwrap();
    optimizer.grad_ready(c, 0, &[Bf16::from_f32(2.0); 4]).unwrap();
    optimizer.grad_ready(d, 0, &[F16::from_f32(0.25); 4]).unwrap();
    let wrong = optimizer.grad(a.with_gradient::<Bf16>()).unwrap_err();
    assert_eq!(wrong.text(), "the gradient of a is f32, but was asked for as bf16");
    let mut reduction = optimizer.reduce().unwrap();
    let mut reduced = [0.0f32; 4];
    reduction.read(a.id(), Slot::Grad, 0, &mut reduced).unwrap();
    assert_eq!(reduced, [0.5; 4]);
    let mut reduced = [F16(0); 4];
    reduction.read(b.id(), Slot::Grad, 0, &mut reduced).unwrap();
    assert_eq!(reduced, [F16::from_f32(0.5); 4]);
    reduction.apply().unwrap();
    reduction.gather().unwrap();
    for (param, expected) in [(b, -0.5), (d, -0.5)] {
        assert_eq!(optimizer.param(param).unwrap()[..], [Bf16::from_f32(expected); 4]);
    }
    assert_eq!(optimizer.param(a).unwrap()[0].to_f32(), -0.5);
    assert_eq!(optimizer.param(c).unwrap()[0].to_f32(), -2.0);
}

#[test]
fn micro_steps_add_up() {
    for kind in [MicroStep::Local, MicroStep::Reduce] {
        ranks::run(2, |group, rank| {
            let (mut optimizer, w) = begun(&group, &descent(&[(Key::Stage, 2)]));
            for kind in [kind, kind, MicroStep::Last] {
                optimizer.micro_step(kind).unwrap();
                let mut gradient = optimizer.grad(w).unwrap();
                let first = if gradient.accumulates() { gradient[0] } else { 0.0 };
                gradient.fill(first + rank as f32);
                gradient.ready().unwrap();
            }
            optimizer.step().unwrap();
            assert_eq!(read(&optimizer, w, COUNT), [1.0 - 1.5; COUNT]);
            assert!(optimizer.memory(Memory::Accumulated).unwrap().now_nbytes > 0);
        });
    }
}

#[test]
fn weights_say_how_much_a_rank_counts() {
    ranks::run(2, |group, rank| {
        let mut weighted = descent(&[]);
        weighted.set(Key::Divisor, Divisor::Weights).unwrap();
        let (mut optimizer, w) = begun(&group, &weighted);
        optimizer.set_weight([3.0, 1.0][rank]).unwrap();
        optimizer.grad_ready(w, 0, &[rank as f32; COUNT]).unwrap();
        optimizer.step().unwrap();
        assert_eq!(read(&optimizer, w, COUNT), [0.75; COUNT]);
        assert_eq!(optimizer.set_weight(f64::NAN).unwrap_err().code(), Code::InvalidArgument);
    });
}

#[test]
fn a_step_with_a_nan_is_skipped_by_all() {
    ranks::run(2, |group, rank| {
        let (mut optimizer, w) = begun(&group, &descent(&[]));
        let value = if rank == 1 { f32::NAN } else { 1.0 };
        optimizer.grad_ready(w, 0, &[value; COUNT]).unwrap();
        let result = optimizer.step().unwrap();
        let expected =
            StepResult {
                step: 0,
                skipped: true,
                skipped_total: 1,
                unfilled_count: 0,
                grad_norm: 0.0,
                loss_scale: 1.0,
                stop_reason: 0,
                synced: false,
                spread: 0.0,
            };
        assert_eq!(result, expected);
        assert_eq!(optimizer.param(w).unwrap()[..], [1.0; COUNT]);
    });
}

#[test]
fn parameter_sets_and_scalars_are_set_while_it_runs() {
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, Some(&descent(&[]))).unwrap();
    let mut fast = Config::new().unwrap();
    fast.set(Key::Lr, 2.0).unwrap();
    let set = optimizer.add_set(&fast).unwrap();
    let mut of_set = Config::new().unwrap();
    of_set.set(Key::Set, set).unwrap();
    let a = optimizer.add_param::<f32>("a", &[], None).unwrap();
    let b = optimizer.add_param::<f32>("b", &[], Some(&of_set)).unwrap();
    optimizer.seal().unwrap();
    optimizer.begin(Source::Local).unwrap();
    for lr in [2.0, 4.0] {
        assert_eq!(optimizer.get_f64(set, Key::Lr).unwrap(), lr);
        optimizer.grad_ready(a, 0, &[1.0]).unwrap();
        optimizer.grad_ready(b, 0, &[1.0]).unwrap();
        optimizer.step().unwrap();
        optimizer.set_f64(set, Key::Lr, 4.0).unwrap();
    }
    assert_eq!((optimizer.param(a).unwrap()[0], optimizer.param(b).unwrap()[0]), (-2.0, -6.0));
    assert_eq!(optimizer.get_i64(Key::StepCount).unwrap(), 2);
    optimizer.set_i64(Key::StepCount, 7).unwrap();
    assert_eq!(optimizer.get_i64(Key::StepCount).unwrap(), 7);
    assert_eq!(optimizer.set_i64(Key::Lr, 7).unwrap_err().code(), Code::Unsupported);
    assert_eq!(optimizer.get_i64(Key::Lr).unwrap_err().code(), Code::Unsupported);
    assert_eq!(optimizer.get_f64(9, Key::Lr).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn orders_are_given_before_seal() {
    ranks::run(2, |group, _| {
        let mut optimizer = Optimizer::new(&group, Some(&descent(&[(Key::Stage, 3)]))).unwrap();
        let a = optimizer.add_param::<f32>("a", &[300], None).unwrap();
        let b = optimizer.add_param::<f32>("b", &[300], None).unwrap();
        assert_eq!(optimizer.set_order(&[a.id()]).unwrap_err().code(), Code::InvalidArgument);
        optimizer.set_order(&[a.id(), b.id()]).unwrap();
        assert_eq!(optimizer.set_gather_order(&[7]).unwrap_err().code(), Code::InvalidArgument);
        optimizer.set_gather_order(&[b.id(), a.id()]).unwrap();
        optimizer.seal().unwrap();
        optimizer.begin(Source::Local).unwrap();
        for param in [b, a] {
            assert_eq!(optimizer.param(param).unwrap()[..], [0.0; 300]);
        }
        for param in [a, b] {
            optimizer.grad_ready(param, 0, &[1.0; 300]).unwrap();
        }
        optimizer.step().unwrap();
        assert_eq!(optimizer.set_order(&[0, 1]).unwrap_err().code(), Code::State);
    });
}

#[test]
fn a_model_group_shares_the_norm() {
    let norms = ranks::run(4, |group, rank| {
        let replicas = group.split(rank as i64 / 2, 0).unwrap().unwrap();
        let model = group.split(rank as i64 % 2, 0).unwrap().unwrap();
        let mut optimizer = Optimizer::new(&replicas, Some(&config(&[(Key::GradNorm, 1)], "adamw"))).unwrap();
        optimizer.set_model_group(&model).unwrap();
        drop((group, replicas, model));
        let w = optimizer.add_param::<f32>("w", &[8], None).unwrap();
        optimizer.seal().unwrap();
        optimizer.begin(Source::Local).unwrap();
        optimizer.grad_ready(w, 0, &[3.0; 8]).unwrap();
        optimizer.step().unwrap().grad_norm
    });
    assert_eq!(norms, [12.0; 4]);
}

#[test]
fn one_copy_is_shared_by_the_ranks_of_a_host() {
    ranks::run(2, |group, rank| {
        let mut shared = descent(&[(Key::Stage, 2)]);
        // SAFETY: first values are written by range, and nobody holds a view until `begin` has returned.
        unsafe { shared.one_copy(true).unwrap() };
        let mut optimizer = Optimizer::new(&group, Some(&shared)).unwrap();
        let w = optimizer.add_param::<f32>("w", &[20, 30], None).unwrap();
        optimizer.seal().unwrap();
        let values = [1.0f32; COUNT];
        optimizer.write(w.id(), Slot::Param, 0, if rank == 0 { &values } else { &[] }).unwrap();
        optimizer.begin(Source::Shards).unwrap();
        optimizer.grad_ready(w, 0, &[rank as f32; COUNT]).unwrap();
        optimizer.step().unwrap();
        assert_eq!(optimizer.param(w).unwrap()[..], [0.5; COUNT]);
        let kept = optimizer.memory(Memory::Param).unwrap().formula_nbytes;
        assert_eq!(kept, [4 * COUNT as i64, 0][rank]);
    });
}

#[test]
fn statistics_texts_and_traces_tell_what_was_done() {
    ranks::run(2, |group, rank| {
        let (mut optimizer, w) = begun(&group, &config(&[(Key::TraceEvents, 100), (Key::Overlap, 0)], "adamw"));
        optimizer.grad_ready(w, 0, &[1.0; COUNT]).unwrap();
        optimizer.step().unwrap();
        let stats = optimizer.step_stats().unwrap();
        assert_eq!((stats.step_count, stats.overlap_active), (1, false));
        assert!(stats.reduce_ns > 0 && stats.apply_ns > 0);
        let sent = optimizer.traffic(Operation::ReduceScatter).unwrap();
        assert_eq!(sent.sent_elements, [344, 256][rank]);
        let state = optimizer.memory(Memory::State).unwrap();
        assert_eq!(state.formula_nbytes, [256, 344][rank] * 8);
        assert!(state.now_nbytes <= state.formula_nbytes + state.constant_nbytes);
        assert!(optimizer.describe().unwrap().contains("adamw"));
        let trace = optimizer.trace().unwrap();
        assert!(trace.contains("traceEvents") && trace.contains("grad_ready") && trace.trim_end().ends_with('}'));
    });
}
