//! Misuse that compiles: an error with a text, and nothing broken.

mod ranks;

use std::mem;
use std::ops::Range;

use libzero::{check, sys, Bf16, Code, Config, Error, Group, Key, Optimizer, Param, ReduceOp, Slot, Source, SyncRule};

fn sealed(group: &Group, stage: i64) -> (Optimizer, Param<f32>) {
    let mut config = Config::new().unwrap();
    config.set(Key::Stage, stage).unwrap();
    let mut optimizer = Optimizer::new(group, Some(&config)).unwrap();
    let w = optimizer.add_param::<f32>("w", &[7], None).unwrap();
    optimizer.seal().unwrap();
    (optimizer, w)
}

fn begun(group: &Group, stage: i64) -> (Optimizer, Param<f32>) {
    let (mut optimizer, w) = sealed(group, stage);
    optimizer.begin(Source::Local).unwrap();
    (optimizer, w)
}

fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Code {
    outcome.unwrap_err().code()
}

#[test]
fn calls_in_the_wrong_order_say_which_is_missing() {
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, None).unwrap();
    let w = optimizer.add_param::<f32>("w", &[7], None).unwrap();
    let b = optimizer.add_module_buffer::<f32>("b", &[7], SyncRule::Average).unwrap();
    for outcome in [
        optimizer.param(w).map(drop),
        optimizer.param_mut(w).map(drop),
        optimizer.grad(w).map(drop),
        optimizer.module_buffer(b).map(drop),
        optimizer.views().map(drop),
        optimizer.slots(w.id()).map(drop),
        optimizer.begin(Source::Local),
        optimizer.step().map(drop),
        optimizer.verify().map(drop),
        optimizer.trace().map(drop),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), Code::State);
        assert!(error.text().contains("seal"), "{error}");
    }
    optimizer.seal().unwrap();
    for outcome in [
        optimizer.seal(),
        optimizer.add_param::<f32>("late", &[7], None).map(drop),
        optimizer.grad_ready(w, 0, &[0.0; 7]),
        optimizer.views().map(drop),
    ] {
        assert_eq!(code(outcome), Code::State);
    }
}

#[test]
fn types_are_checked_with_their_names() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = begun(&group, 1);
    let error = optimizer.read(w.id(), Slot::Param, 0, &mut [0.0f64; 7]).unwrap_err();
    assert_eq!(error.to_string(), "ZERO_E_INVALID_ARGUMENT: slot Param of w is f32, but was asked for as f64");
    assert_eq!(code(optimizer.write(w.id(), Slot::FirstMoment, 0, &[0u8; 7])), Code::InvalidArgument);
    let error = optimizer.read(w.id(), Slot::Master, 0, &mut [0f32; 7]).unwrap_err();
    assert_eq!(error.to_string(), "ZERO_E_UNSUPPORTED: slot Master is not kept for w");
    assert_eq!(code(optimizer.grad(w.with_gradient::<Bf16>())), Code::InvalidArgument);
    assert_eq!(code(optimizer.grad_ready(w.with_gradient::<i64>(), 0, &[1])), Code::InvalidArgument);
    assert_eq!(code(optimizer.add_param::<i32>("i", &[1], None)), Code::State);
}

#[test]
fn handles_of_another_optimizer_are_checked() {
    let group = Group::alone(None).unwrap();
    let (optimizer, _) = begun(&group, 1);
    let mut other = Optimizer::new(&group, None).unwrap();
    let short = other.add_param::<Bf16>("short", &[3], None).unwrap();
    let second = other.add_param::<f32>("second", &[3], None).unwrap();
    let buffer = other.add_module_buffer::<f32>("buffer", &[3], SyncRule::None).unwrap();
    let error = optimizer.param(short).unwrap_err();
    assert_eq!(error.text(), "w is f32, but was asked for as bf16");
    let error = optimizer.param(second).unwrap_err();
    assert_eq!(error.text(), "id is 1, but must be that of one of the 1 parameters (from 0)");
    assert_eq!(code(optimizer.grad(second)), Code::InvalidArgument);
    let error = optimizer.module_buffer(buffer).unwrap_err();
    assert_eq!(error.text(), "id is 0, but must be that of one of the 0 module buffers (from 0)");
    assert_eq!(code(optimizer.slots(-1)), Code::InvalidArgument);
}

#[test]
fn slices_must_have_the_tensors_elements() {
    let group = Group::alone(None).unwrap();
    let (optimizer, w) = begun(&group, 1);
    let error = optimizer.param_into(w, &mut [0.0; 6]).unwrap_err();
    assert!(error.text().contains("dst_count is 6, but must be 7"), "{error}");
    assert_eq!(code(optimizer.param_into(w, &mut [])), Code::InvalidArgument);
    assert_eq!(code(optimizer.grad_ready(w, 1, &[0.0; 7])), Code::InvalidArgument);
    assert_eq!(code(optimizer.grad_ready(w, usize::MAX, &[0.0; 7])), Code::InvalidArgument);
    assert_eq!(code(optimizer.read(w.id(), Slot::Param, 7, &mut [0f32; 1])), Code::InvalidArgument);
    let backwards = Range { start: 5, end: 3 };
    let error = optimizer.grad(w).unwrap().ready_range(backwards).unwrap_err();
    assert_eq!(error.to_string(), "ZERO_E_INVALID_ARGUMENT: range is 5 .. 3, but must not end before it starts");
}

/// A sealed optimizer of one tensor with two names.
fn tied_pair() -> (Optimizer, Param<f32>, Param<f32>) {
    let group = Group::alone(None).unwrap();
    let mut tied = Config::new().unwrap();
    tied.set(Key::TiedTo, 0).unwrap();
    let mut optimizer = Optimizer::new(&group, None).unwrap();
    let w = optimizer.add_param::<f32>("w", &[7], None).unwrap();
    let same = optimizer.add_param::<f32>("same", &[7], Some(&tied)).unwrap();
    optimizer.seal().unwrap();
    (optimizer, w, same)
}

#[test]
fn first_values_have_one_writer_and_no_reader() {
    let (mut optimizer, w, same) = tied_pair();

    let mut writer = optimizer.param_mut(w).unwrap();
    assert_eq!(code(optimizer.param_mut(w)), Code::State);
    assert_eq!(code(optimizer.param(w)), Code::State);
    assert_eq!(code(optimizer.param_into(w, &mut [0.0; 7])), Code::State);
    assert_eq!(code(optimizer.read(w.id(), Slot::Param, 0, &mut [0f32; 7])), Code::State);
    assert_eq!(code(optimizer.read(same.id(), Slot::Other(Slot::Param.raw()), 0, &mut [0f32; 1])), Code::State);
    assert_eq!(optimizer.param_mut(same).unwrap_err().text(), "same is held by a view; drop that first");
    writer.fill(2.0);
    assert_eq!(format!("{:?}", writer), format!("{:?}", [2.0; 7]));
    drop(writer);
    let reader = optimizer.param(same).unwrap();
    assert_eq!(reader[..], [2.0; 7]);
    optimizer.read(w.id(), Slot::Param, 0, &mut [0f32; 7]).unwrap();
    assert_eq!(code(optimizer.param_mut(w)), Code::State);
    drop(reader);
    optimizer.begin(Source::Local).unwrap();
    assert_eq!(code(optimizer.param_mut(w)), Code::State);
}

#[test]
fn a_gradient_has_one_view() {
    let (mut optimizer, w, same) = tied_pair();
    optimizer.begin(Source::Local).unwrap();
    let view = optimizer.grad(w).unwrap();
    assert_eq!(optimizer.grad(w).unwrap_err().text(), "the gradient of w is held by a view; drop that first");
    assert_eq!(code(optimizer.grad(same)), Code::State);
    assert_eq!(code(optimizer.grad_ready(w, 0, &[1.0; 7])), Code::State);
    assert_eq!(code(optimizer.grad_ready(same, 0, &[1.0; 7])), Code::State);
    view.ready().unwrap();
    optimizer.grad_ready(same, 0, &[1.0; 7]).unwrap();
}

#[test]
fn forgotten_views_cost_a_step_but_no_memory_safety() {
    ranks::run(2, |group, _| {
        let (mut optimizer, w) = begun(&group, 3);
        mem::forget(optimizer.grad(w).unwrap());
        assert_eq!(code(optimizer.grad(w)), Code::State);
        mem::forget(optimizer.param(w).unwrap());
        let error = optimizer.step().unwrap_err();
        assert!(error.text().contains("acquired parameters: 1;"), "{error}");
    });
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = sealed(&group, 1);
    mem::forget(optimizer.param_mut(w).unwrap());
    assert_eq!(code(optimizer.param(w)), Code::State);
    assert_eq!(code(optimizer.begin(Source::Local)), Code::State);
}

#[test]
fn a_reduction_without_gather_stops_later_steps() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = begun(&group, 1);
    drop(optimizer.reduce().unwrap());
    for outcome in [optimizer.step().map(drop), optimizer.param(w).map(drop), optimizer.grad(w).map(drop)] {
        let error = outcome.unwrap_err();
        assert!(error.text().contains("zero_optimizer_gather"), "{error}");
    }
}

#[test]
fn an_aborted_group_still_gives_the_values_of_its_own_rank() {
    let group = Group::alone(None).unwrap();
    let (mut optimizer, w) = begun(&group, 1);
    let view = optimizer.param(w).unwrap();
    group.abort("test").unwrap();
    assert_eq!(view[..], [0.0; 7]);
    drop(view);
    assert_eq!(code(optimizer.step()), Code::Aborted);
    assert_eq!(optimizer.param(w).unwrap()[..], [0.0; 7]);
}

#[test]
fn keys_that_share_memory_are_not_set_by_number() {
    let mut config = Config::new().unwrap();
    for key in [Key::OneCopy, Key::Other(sys::ZERO_KEY_ONE_COPY)] {
        let error = config.set(key, 1).unwrap_err();
        assert_eq!(error.code(), Code::Unsupported);
        assert!(error.text().contains("Config::one_copy"), "{error}");
    }
    assert_eq!(code(config.set(Key::OneCopy, 1.0)), Code::InvalidArgument);
}

#[test]
fn configs_say_what_is_wrong_with_a_value() {
    let mut config = Config::new().unwrap();
    assert_eq!(code(config.set(Key::Stage, "3")), Code::InvalidArgument);
    assert_eq!(code(config.set(Key::Algorithm, 3)), Code::InvalidArgument);
    assert_eq!(code(config.set(Key::Lr, f64::NAN)), Code::InvalidArgument);
    assert_eq!(code(config.set(Key::Algorithm, "a\0b")), Code::InvalidArgument);
    assert_eq!(code(config.set(Key::Seed, usize::MAX)), Code::InvalidArgument);
    config.set(Key::GradNorm, true).unwrap().set(Key::Seed, 1i64 << 40).unwrap();
}

#[test]
fn configs_take_the_types_that_programs_have() {
    let (stage, window, rate, algorithm) = (2u32, 1usize << 40, 0.25f32, String::from("sgd"));
    let mut config = Config::new().unwrap();
    config.set(Key::Stage, stage).unwrap().set(Key::Seed, window).unwrap();
    config.set(Key::Lr, rate).unwrap().set(Key::Algorithm, algorithm).unwrap();
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, Some(&config)).unwrap();
    optimizer.add_param::<f32>("w", &[7], None).unwrap();
    optimizer.seal().unwrap();
    assert_eq!(optimizer.get_f64(0, Key::Lr).unwrap(), 0.25);
    assert!(optimizer.describe().unwrap().contains("algorithm sgd, stage 2"));
}

#[test]
fn names_are_unique_texts_without_nul() {
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, None).unwrap();
    assert_eq!(code(optimizer.add_param::<f32>("a\0b", &[1], None)), Code::InvalidArgument);
    assert_eq!(code(optimizer.add_module_buffer::<f32>("a\0b", &[1], SyncRule::None)), Code::InvalidArgument);
    assert_eq!(code(optimizer.add_param::<f32>("", &[1], None)), Code::InvalidArgument);
    assert_eq!(code(optimizer.add_param::<f32>("a", &[-1], None)), Code::InvalidArgument);
    assert_eq!(code(group.abort("a\0b")), Code::InvalidArgument);
    let w = optimizer.add_param::<f32>("ä", &[1], None).unwrap();
    assert_eq!(code(optimizer.add_param::<f32>("ä", &[1], None)), Code::InvalidArgument);
    assert_eq!(w.id(), 0);
}

#[test]
fn tensors_without_elements_have_empty_views() {
    let group = Group::alone(None).unwrap();
    let mut optimizer = Optimizer::new(&group, None).unwrap();
    let empty = optimizer.add_param::<f32>("empty", &[3, 0], None).unwrap();
    let buffer = optimizer.add_module_buffer::<u8>("none", &[0], SyncRule::None).unwrap();
    optimizer.seal().unwrap();
    assert_eq!(optimizer.param_mut(empty).unwrap()[..], []);
    assert_eq!(optimizer.module_buffer(buffer).unwrap()[..], []);
    optimizer.begin(Source::Local).unwrap();
    optimizer.param_into(empty, &mut []).unwrap();
    optimizer.grad(empty).unwrap().ready().unwrap();
    optimizer.grad_ready(empty, 0, &[]).unwrap();
    optimizer.read(empty.id(), Slot::Param, 0, &mut [0f32; 0]).unwrap();
    optimizer.step().unwrap();
}

#[test]
fn errors_of_the_c_api_have_their_text() {
    let mut size = 0;
    // SAFETY: no handle is an error.
    let status = unsafe { sys::zero_group_size(std::ptr::null(), &mut size) };
    let error = check(status).unwrap_err();
    assert_eq!(error.to_string(), "ZERO_E_BAD_HANDLE: group is NULL; expected a zero_group");
    let source: &dyn std::error::Error = &error;
    assert!(source.source().is_none());
    let group = Group::alone(None).unwrap();
    assert_eq!(code(group.all_reduce(&[1u8], &mut [], ReduceOp::Sum)), Code::InvalidArgument);
}
