//! Optimizers: views, slots, narrow formats, first values, module buffers and verification, over ranks that are threads.

mod ranks;
mod training;

use std::ops::Range;

use libzero::{Bf16, Code, DType, Finding, Group, Initialiser, Key, Master, Optimizer, Param, Slot, Source, SyncRule, Unfilled, F8E4M3};

use training::*;

#[test]
fn an_update_of_ones_own_sees_gradient_state_and_parameter() {
    for stage in 0..=3 {
        ranks::run(3, |group, rank| {
            let own = config(&[(Key::Stage, stage), (Key::CustomSlots, 2)], "custom");
            let (mut optimizer, w) = begun(&group, &own);
            assert_eq!(optimizer.step().unwrap_err().code(), Code::State);
            for _ in 0..2 {
                optimizer.grad_ready(w, 0, &[rank as f32; COUNT]).unwrap();
                let mut reduction = optimizer.reduce().unwrap();
                assert!(!reduction.result().skipped);
                assert_eq!(reduction.apply().unwrap_err().code(), Code::State);
                for mut view in reduction.views().unwrap() {
                    assert_eq!(view.param(), w.id());
                    let gradient = view.slot::<f32>(Slot::Grad).unwrap();
                    let sum = view.slot::<f32>(Slot::custom(1)).unwrap();
                    let values = view.slot::<f32>(Slot::Param).unwrap();
                    assert_eq!(values.len(), view.range().len());
                    for ((value, sum), gradient) in values.iter_mut().zip(sum).zip(gradient) {
                        *sum += *gradient;
                        *value -= *sum;
                    }
                }
                reduction.gather().unwrap();
            }
            assert_eq!(optimizer.param(w).unwrap()[..], [1.0 - 3.0; COUNT]);
            let mut sums = [0.0f32; COUNT];
            optimizer.read(w.id(), Slot::custom(1), 0, &mut sums).unwrap();
            assert_eq!(sums, [2.0; COUNT]);
        });
    }
}

#[test]
fn views_outside_a_step_have_states_only() {
    let covered = ranks::run(2, |group, _| {
        let (mut optimizer, w) = begun(&group, &config(&[], "adamw"));
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for mut view in optimizer.views().unwrap() {
            view.slot::<f32>(Slot::FirstMoment).unwrap().fill(3.0);
            assert_eq!(view.slot::<f32>(Slot::Param).unwrap_err().code(), Code::State);
            assert_eq!(view.slot::<f32>(Slot::Grad).unwrap_err().code(), Code::State);
            ranges.push(view.range());
        }
        let mut moments = [0.0f32; COUNT];
        optimizer.read(w.id(), Slot::FirstMoment, 0, &mut moments).unwrap();
        assert_eq!(moments, [3.0; COUNT]);
        ranges
    });
    assert_eq!(covered.concat(), [0..256, 256..600]);
}

#[test]
fn a_slot_of_a_view_is_handed_out_once() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, _) = begun(&group, &config(&[], "adamw"));
    let mut views = optimizer.views().unwrap();
    let moment = views[0].slot::<f32>(Slot::FirstMoment).unwrap();
    assert_eq!(views[0].slot::<f32>(Slot::FirstMoment).unwrap_err().code(), Code::State);
    assert_eq!(views[0].slot::<f32>(Slot::Other(10)).unwrap_err().code(), Code::State);
    assert_eq!(views[0].slot::<f64>(Slot::SecondMoment).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(views[0].slot::<f32>(Slot::Master).unwrap_err().code(), Code::Unsupported);
    assert_eq!(views[0].slot::<f32>(Slot::Other(-3)).unwrap_err().code(), Code::Unsupported);
    assert_eq!(views[0].slot::<f32>(Slot::Other(74)).unwrap_err().code(), Code::Unsupported);
    let other = views[0].slot::<f32>(Slot::SecondMoment).unwrap();
    moment[0] = 1.0;
    other[0] = 2.0;
    assert_eq!((moment[0], other[0]), (1.0, 2.0));
}

#[test]
fn scales_are_read_by_range_but_have_no_views() {
    let group = Group::alone(None).unwrap();
    let mut narrow = config(&[], "adamw");
    narrow.set(Key::FirstMomentDtype, DType::F8E4M3).unwrap();
    let (mut optimizer, w) = begun(&group, &narrow);
    optimizer.grad_ready(w, 0, &[1.0; COUNT]).unwrap();
    optimizer.step().unwrap();
    let kept = optimizer.slots(w.id()).unwrap();
    let scale = kept.iter().find(|kept| kept.slot == Slot::FirstScale).unwrap();
    assert_eq!((scale.dtype, scale.len), (DType::F32, 3));
    let mut scales = [0.0f32; 3];
    optimizer.read(w.id(), Slot::FirstScale, 0, &mut scales).unwrap();
    assert!(scales[0] > 0.0);
    let mut codes = [F8E4M3(0); COUNT];
    optimizer.read(w.id(), Slot::FirstMoment, 0, &mut codes).unwrap();
    assert!(codes.iter().all(|&code| code == codes[0] && code.0 != 0));
    let mut views = optimizer.views().unwrap();
    assert_eq!(views[0].slot::<f32>(Slot::FirstScale).unwrap_err().code(), Code::Unsupported);
    assert_eq!(views[0].slot::<F8E4M3>(Slot::FirstMoment).unwrap()[..], codes);
}

#[test]
fn eight_bit_parameters_are_decoded() {
    ranks::run(2, |group, _| {
        let mut narrow = config(&[(Key::Stage, 3)], "adamw");
        narrow.set(Key::ParamDtype, DType::F8E4M3).unwrap();
        let (optimizer, w) = begun(&group, &narrow);
        assert_eq!(optimizer.param(w).unwrap()[..], [1.0; COUNT]);
        let wrong = optimizer.read(w.id(), Slot::Param, 0, &mut [0.0f32; 4]).unwrap_err();
        assert_eq!(wrong.text(), "slot Param of w is f8_e4m3, but was asked for as f32");
    });
}

#[test]
fn a_remainder_completes_a_bf16_parameter() {
    let group = Group::alone(None).unwrap();
    let mut remainder = config(&[], "adamw");
    remainder.set(Key::Master, Master::Remainder).unwrap();
    let mut optimizer = Optimizer::new(&group, Some(&remainder)).unwrap();
    let w = optimizer.add_param::<Bf16>("w", &[5], None).unwrap();
    optimizer.seal().unwrap();
    optimizer.init_param(w, Initialiser::Constant(1.0 + 1.0 / 512.0), 1).unwrap();
    optimizer.begin(Source::Shards).unwrap();
    let mut rest = [0u16; 5];
    optimizer.read(w.id(), Slot::Master, 0, &mut rest).unwrap();
    let value = f32::from_bits((1.0f32 + 1.0 / 512.0).to_bits());
    assert_eq!(rest, [value.to_bits() as u16; 5]);
}

#[test]
fn updates_of_tensors_that_may_stay_untouched_are_counted() {
    ranks::run(2, |group, rank| {
        let keys = [(Key::Unfilled, Unfilled::Untouched.raw().into()), (Key::Stage, 2)];
        let mut optimizer = Optimizer::new(&group, Some(&config(&keys, "adamw"))).unwrap();
        let v = optimizer.add_param::<f32>("v", &[600], None).unwrap();
        let w = optimizer.add_param::<f32>("w", &[600], None).unwrap();
        optimizer.seal().unwrap();
        optimizer.begin(Source::Local).unwrap();
        for step in 0..3 {
            optimizer.grad_ready(v, 0, &[1.0f32; 600]).unwrap();
            if step == 1 {
                optimizer.grad_ready(w, 0, &[1.0f32; 600]).unwrap();
            }
            optimizer.step().unwrap();
        }
        let counts = |optimizer: &Optimizer| {
            [v, w].map(|param| {
                let mut count = [0i64];
                optimizer.read(param.id(), Slot::UpdateCount, 0, &mut count).unwrap();
                count[0]
            })
        };
        assert_eq!(counts(&optimizer), [3, 1]);
        for mut view in optimizer.views().unwrap() {
            assert_eq!(view.slot::<i64>(Slot::UpdateCount).unwrap_err().code(), Code::Unsupported);
        }
        optimizer.set_i64(Key::StepCount, 9).unwrap();
        optimizer.write(w.id(), Slot::UpdateCount, 0, &[4i64][rank..]).unwrap();
        assert_eq!(counts(&optimizer), [9, 4]);
    });
}

#[test]
fn a_run_is_saved_and_goes_on_at_another_stage_and_world_size() {
    struct Saved {
        slots: Vec<(Slot, Vec<f32>)>,
        steps: i64,
    }
    let step = |optimizer: &mut Optimizer, w: Param<f32>| {
        let gradient: Vec<f32> = (0..COUNT).map(|i| (i % 7) as f32 - 3.0).collect();
        optimizer.grad_ready(w, 0, &gradient).unwrap();
        optimizer.step().unwrap();
    };
    let saved = ranks::run(3, |group, _| {
        let (mut optimizer, w) = begun(&group, &config(&[(Key::Stage, 3)], "adamw"));
        step(&mut optimizer, w);
        let mut slots = Vec::new();
        for kept in optimizer.slots(w.id()).unwrap() {
            let mut values = vec![0.0f32; kept.len];
            optimizer.read(w.id(), kept.slot, 0, &mut values).unwrap();
            slots.push((kept.slot, values));
        }
        let steps = optimizer.get_i64(Key::StepCount).unwrap();
        step(&mut optimizer, w);
        (Saved { slots, steps }, read(&optimizer, w, COUNT))
    });
    let (saved, expected) = &saved[0];
    ranks::run(2, |group, rank| {
        let mut optimizer = Optimizer::new(&group, Some(&config(&[], "adamw"))).unwrap();
        let w = optimizer.add_param::<f32>("w", &[20, 30], None).unwrap();
        optimizer.seal().unwrap();
        for (slot, values) in &saved.slots {
            let mine = if rank == 0 { &values[..400] } else { &values[400..] };
            optimizer.write(w.id(), *slot, 400 * rank, mine).unwrap();
        }
        optimizer.set_i64(Key::StepCount, saved.steps).unwrap();
        optimizer.begin(Source::Shards).unwrap();
        step(&mut optimizer, w);
        assert_eq!(&read(&optimizer, w, COUNT), expected);
    });
}

#[test]
fn first_values_are_the_same_at_any_world_size() {
    let make = |size| {
        ranks::run(size, |group, _| {
            let mut optimizer = Optimizer::new(&group, Some(&descent(&[(Key::Stage, 3)]))).unwrap();
            let w = optimizer.add_param::<f32>("w", &[20, 30], None).unwrap();
            optimizer.seal().unwrap();
            let uniform = Initialiser::Uniform { low: -2.0, high: 5.0 };
            optimizer.init_param(w, uniform, 11).unwrap();
            optimizer.begin(Source::Shards).unwrap();
            read(&optimizer, w, COUNT)
        })
    };
    let (one, three) = (make(1), make(3));
    assert_eq!(one[0], three[2]);
    assert!(one[0].iter().all(|value| (-2.0..5.0).contains(value)));
    assert!(one[0].iter().any(|&value| value > 3.0) && one[0].iter().any(|&value| value < 0.0));
}

#[test]
fn normal_first_values_have_mean_and_deviation() {
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, None).unwrap();
    let w = optimizer.add_param::<f32>("w", &[100_000], None).unwrap();
    optimizer.seal().unwrap();
    let normal = Initialiser::Normal { mean: 3.0, deviation: 0.5 };
    optimizer.init_param(w, normal, 1).unwrap();
    optimizer.begin(Source::Shards).unwrap();
    let values = optimizer.param(w).unwrap();
    let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / 1e5;
    let variance = values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / 1e5;
    assert!((mean - 3.0).abs() < 0.01 && (variance.sqrt() - 0.5).abs() < 0.01, "{mean} {variance}");
}

#[test]
fn module_buffers_are_averaged_broadcast_or_left() {
    ranks::run(2, |group, rank| {
        let mut optimizer = Optimizer::new(&group, None).unwrap();
        let rules = [SyncRule::Average, SyncRule::Broadcast, SyncRule::None];
        let buffers: Vec<_> =
            rules.iter().map(|&rule| optimizer.add_module_buffer::<f64>(&format!("{rule:?}"), &[3], rule).unwrap()).collect();
        let counts = optimizer.add_module_buffer::<i64>("counts", &[], SyncRule::Broadcast).unwrap();
        assert_eq!(counts.id(), 3);
        optimizer.seal().unwrap();
        for &buffer in &buffers {
            optimizer.module_buffer(buffer).unwrap().fill(rank as f64 + 1.0);
        }
        optimizer.module_buffer(counts).unwrap()[0] = rank as i64 + 5;
        optimizer.sync_module_buffers().unwrap();
        let values: Vec<_> = buffers.iter().map(|&buffer| optimizer.module_buffer(buffer).unwrap()[2]).collect();
        assert_eq!(values, [1.5, 1.0, rank as f64 + 1.0]);
        assert_eq!(optimizer.module_buffer(counts).unwrap()[..], [5]);
    });
}

#[test]
fn a_module_buffer_and_parameters_are_held_together() {
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, None).unwrap();
    let w = optimizer.add_param::<f32>("w", &[3], None).unwrap();
    let mean = optimizer.add_module_buffer::<f32>("mean", &[3], SyncRule::Average).unwrap();
    optimizer.seal().unwrap();
    optimizer.begin(Source::Local).unwrap();
    let values = optimizer.param(w).unwrap();
    let mut statistics = optimizer.module_buffer(mean).unwrap();
    statistics.copy_from_slice(&values);
    assert_eq!(optimizer.module_buffer(mean).unwrap_err().text(), "mean is held by a view; drop that first");
}

#[test]
fn verify_tells_what_was_changed() {
    ranks::run(2, |group, rank| {
        let (mut optimizer, w) = begun(&group, &config(&[(Key::VerifyEvery, 1)], "adamw"));
        optimizer.grad_ready(w, 0, &[1.0; COUNT]).unwrap();
        optimizer.step().unwrap();
        assert_eq!(optimizer.verify().unwrap().found, Finding::None);
        for mut view in optimizer.views().unwrap() {
            if rank == 1 {
                view.slot::<f32>(Slot::SecondMoment).unwrap()[7] = 9.0;
            }
        }
        let result = optimizer.verify().unwrap();
        assert_eq!((result.found, result.rank, result.param), (Finding::Shard, 1, w.id()));
        assert_eq!(result.slot, Slot::SecondMoment);
        let entries = result.offset..result.offset + result.count;
        assert!(entries.contains(&(256 + 7)), "{result:?}");
        assert!(result.chunk_count == 1 && result.shard_nbytes > 0);
    });
}
