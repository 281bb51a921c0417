//! Memory of a device in optimizers: the bits of the host, and what does not fit.

mod device;
mod ranks;
mod training;

use std::ptr;

use libzero::{Code, Config, DeviceSlice, Group, Key, Optimizer, Param, Slot, Source, Tier};

use device::{caller, Caller, Piece, Stream};
use training::{begun, config, descent, read, COUNT};

const LENS: [usize; 3] = [600, 7, 0];
const STEPS: usize = 4;

/// Numbers of many magnitudes, always the same.
fn values_of(len: usize, seed: usize) -> Vec<f32> {
    let mut state = (seed as u32).wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next() * next()).collect()
}

fn gradient_of(rank: usize, step: usize, param: usize) -> Vec<f32> {
    values_of(LENS[param], 100 * step + 10 * rank + param + 7)
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Parameters and first moments, and second moments that this rank holds.
type Outcome = Vec<Vec<u32>>;

fn registered(group: &Group, keys: &[(Key, i64)]) -> (Optimizer, Vec<Param<f32>>) {
    let mut config = config(keys, "adamw");
    config.set(Key::Lr, 0.01).unwrap().set(Key::BucketBytes, 1024).unwrap();
    let mut optimizer = Optimizer::new(group, Some(&config)).unwrap();
    let params = (0..LENS.len()).map(|param| optimizer.add_param(&format!("p{param}"), &[LENS[param] as i64], None).unwrap()).collect();
    optimizer.seal().unwrap();
    (optimizer, params)
}

fn first_values(rank: usize, param: usize) -> Vec<f32> {
    if rank == 0 {
        values_of(LENS[param], param)
    } else {
        vec![0.0; LENS[param]]
    }
}

fn moments(optimizer: &Optimizer, params: &[Param<f32>]) -> Outcome {
    let moment = |(param, &len): (&Param<f32>, &usize)| {
        let mut values = vec![0.0; len];
        optimizer.read(param.id(), Slot::FirstMoment, 0, &mut values).unwrap();
        bits(&values)
    };
    params.iter().zip(&LENS).map(moment).collect()
}

fn train_on_host(group: &Group, rank: usize, keys: &[(Key, i64)]) -> Outcome {
    let (mut optimizer, params) = registered(group, keys);
    for (index, &param) in params.iter().enumerate() {
        optimizer.param_mut(param).unwrap().copy_from_slice(&first_values(rank, index));
    }
    optimizer.begin(Source::Root).unwrap();
    for step in 0..STEPS {
        for (index, &param) in params.iter().enumerate() {
            optimizer.grad_ready(param, 0, &gradient_of(rank, step, index)).unwrap();
        }
        optimizer.step().unwrap();
    }
    let mut outcome: Outcome = params.iter().map(|&param| bits(&optimizer.param(param).unwrap())).collect();
    outcome.extend(moments(&optimizer, &params));
    outcome.extend(optimizer.views().unwrap().iter_mut().map(|view| bits(view.slot::<f32>(Slot::SecondMoment).unwrap())));
    outcome
}

/// How gradients are given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Given,
    Bulk,
    Acquired,
    Host,
}

fn give(optimizer: &mut Optimizer, params: &[Param<f32>], stream: &Stream, rank: usize, step: usize, manner: Manner) {
    let values: Vec<_> = (0..params.len()).map(|index| gradient_of(rank, step, index)).collect();
    let mut pieces: Vec<_> = LENS.iter().map(|&len| Piece::new(stream, len)).collect();
    for (piece, values) in pieces.iter_mut().zip(&values) {
        stream.put(values, piece.slice_mut());
    }
    if manner == Manner::Bulk {
        let grads: Vec<_> = params.iter().zip(&pieces).map(|(&param, piece)| (param, piece.slice())).collect();
        optimizer.grads_ready_device(&grads).unwrap();
    }
    for (index, &param) in params.iter().enumerate() {
        match manner {
            Manner::Given => {
                let (whole, half) = (pieces[index].slice(), LENS[index] / 2);
                optimizer.grad_ready_device(param, half, whole.get(half..whole.len()).unwrap()).unwrap();
                optimizer.grad_ready_device(param, 0, whole.get(0..half).unwrap()).unwrap();
            }
            Manner::Acquired => {
                let mut gradient = optimizer.grad_device(param).unwrap();
                assert!(!gradient.accumulates());
                stream.put(&values[index], gradient.slice_mut());
                gradient.ready().unwrap();
            }
            Manner::Host => optimizer.grad_ready(param, 0, &values[index]).unwrap(),
            Manner::Bulk => {}
        }
    }
    optimizer.step().unwrap();
    stream.wait();
}

fn train_on_device(group: &Group, rank: usize, keys: &[(Key, i64)], stream: &Stream, manner: Manner) -> Outcome {
    let lends = keys.contains(&(Key::Tier, 1));
    let (mut optimizer, params) = registered(group, keys);
    // SAFETY: the stream outlives the optimizer.
    unsafe { optimizer.set_stream(stream.raw) };
    for (index, &param) in params.iter().enumerate() {
        let values = first_values(rank, index);
        if lends {
            stream.put(&values, optimizer.param_mut_device(param).unwrap().slice_mut());
            stream.wait();
        } else {
            optimizer.param_mut(param).unwrap().copy_from_slice(&values);
        }
    }
    optimizer.begin(Source::Root).unwrap();
    for step in 0..STEPS {
        give(&mut optimizer, &params, stream, rank, step, manner);
    }
    let whole = |(index, &param): (usize, &Param<f32>)| {
        if lends && manner != Manner::Given {
            let view = optimizer.param_device(param).unwrap();
            assert_eq!((view.slice().device(), view.slice().is_empty()), (stream.device, LENS[index] == 0));
            return bits(&stream.get(view.slice()));
        }
        let mut piece = Piece::new(stream, LENS[index]);
        optimizer.param_into_device(param, &mut piece.slice_mut()).unwrap();
        bits(&stream.get(piece.slice()))
    };
    let mut outcome: Outcome = params.iter().enumerate().map(whole).collect();
    outcome.extend(moments(&optimizer, &params));
    for mut view in optimizer.views().unwrap() {
        outcome.push(if lends {
            bits(&stream.get(view.slot_device::<f32>(Slot::SecondMoment).unwrap().as_slice()))
        } else {
            bits(view.slot::<f32>(Slot::SecondMoment).unwrap())
        });
    }
    outcome
}

fn compare(caller: Caller, stage: i64, tier: i64, manner: Manner) {
    let outcomes = ranks::run(2, |group, rank| {
        let stream = Stream::new(caller, rank as i64);
        let on_device = [(Key::Stage, stage), (Key::Device, rank as i64), (Key::Tier, tier)];
        (train_on_device(&group, rank, &on_device, &stream, manner), train_on_host(&group, rank, &[(Key::Stage, stage)]))
    });
    for (found, expected) in outcomes {
        assert!(found == expected, "stage {stage}, tier {tier}, {manner:?}");
        assert!(expected[0].iter().any(|&value| value != 0));
    }
}

#[test]
fn memory_of_a_device_trains_with_the_bits_of_the_host() {
    let caller = match caller() {
        Some(caller) => caller,
        None => return,
    };
    for stage in 0..=3 {
        for manner in [Manner::Given, Manner::Bulk, Manner::Host] {
            compare(caller, stage, 0, manner);
        }
        for manner in [Manner::Given, Manner::Bulk, Manner::Host, Manner::Acquired] {
            compare(caller, stage, 1, manner);
        }
    }
}

fn code<T>(result: libzero::Result<T>) -> Code {
    result.err().expect("an error").code()
}

#[test]
fn memory_of_a_device_needs_an_optimizer_of_that_device() {
    let group = Group::alone(None).unwrap();
    let (optimizer, w) = begun(&group, &descent(&[]));
    // SAFETY: it is refused before anything would reach it.
    let slice = unsafe { DeviceSlice::from_raw(1, ptr::null::<f32>().wrapping_add(1024), COUNT) };
    let error = optimizer.grad_ready_device(w, 0, slice).unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    assert_eq!(error.text(), "the memory lies on CUDA device 1, but the optimizer has no Key::Device");
    assert_eq!(code(optimizer.grads_ready_device(&[(w, slice)])), Code::InvalidArgument);
    assert_eq!(code(optimizer.param_device(w)), Code::Unsupported);
    assert_eq!(code(optimizer.param_mut_device(w)), Code::Unsupported);
    assert_eq!(code(optimizer.grad_device(w)), Code::Unsupported);
    assert_eq!(slice.get(600..601), None);
    assert_eq!(slice.get(599..600).unwrap().as_ptr(), slice.as_ptr().wrapping_add(599));
}

#[test]
fn memory_of_another_kind_is_refused() {
    let caller = match caller() {
        Some(caller) => caller,
        None => return,
    };
    let group = Group::alone(None).unwrap();
    let (stream, other) = (Stream::new(caller, 0), Stream::new(caller, 1));
    let mut optimizer = Optimizer::new(&group, Some(&config(&[(Key::Device, 0), (Key::Tier, 1)], "sgd"))).unwrap();
    let w = optimizer.add_param::<f32>("w", &[COUNT as i64], None).unwrap();
    optimizer.seal().unwrap();
    assert_eq!(code(optimizer.param_mut(w)), Code::Unsupported);
    optimizer.begin(Source::Local).unwrap();
    assert_eq!(code(optimizer.param_mut_device(w)), Code::State);
    assert!(optimizer.param(w).unwrap_err().text().contains("methods that end with _device"));
    assert_eq!(code(optimizer.grad(w)), Code::Unsupported);
    assert_eq!(code(optimizer.views().unwrap()[0].slot::<f32>(Slot::Grad)), Code::Unsupported);
    let there = Piece::new(&other, COUNT);
    let error = optimizer.grad_ready_device(w, 0, there.slice()).unwrap_err();
    assert_eq!(error.text(), "the memory lies on CUDA device 1, but the optimizer has Key::Device 0");
    // SAFETY: libzero finds that it lies on another device.
    let claimed = unsafe { DeviceSlice::from_raw(0, there.slice().as_ptr(), COUNT) };
    assert_eq!(code(optimizer.grad_ready_device(w, 0, claimed)), Code::InvalidArgument);
    let piece = Piece::new(&stream, COUNT - 1);
    assert_eq!(code(optimizer.grads_ready_device(&[(w, piece.slice())])), Code::InvalidArgument);
    assert_eq!(code(optimizer.grad_ready_device(w, 2, piece.slice())), Code::InvalidArgument);
    {
        let _first = optimizer.grad_device(w).unwrap();
        assert_eq!(code(optimizer.grad_device(w)), Code::State);
        assert_eq!(code(optimizer.grad_ready_device(w, 0, piece.slice())), Code::State);
    }
    let mut gradient = optimizer.grad_device(w).unwrap();
    assert!(gradient.accumulates());
    gradient.ready_range(0..300).unwrap();
    assert_eq!(gradient.slice_mut().len(), COUNT);
    gradient.ready_range(300..COUNT).unwrap();
    assert!(gradient.slice_mut().is_empty());
    drop(gradient);
    optimizer.step().unwrap();
    assert_eq!(read(&optimizer, w, COUNT).len(), COUNT);
    // SAFETY: libzero finds that it is a stream of another device.
    unsafe { optimizer.set_stream(other.raw) };
    assert_eq!(code(optimizer.step()), Code::InvalidArgument);
}

#[test]
fn tiers_are_numbers_of_their_own() {
    let mut config = Config::new().unwrap();
    assert_eq!(code(config.set(Key::Tier, Tier::Other(2))), Code::InvalidArgument);
    config.set(Key::Tier, Tier::Device).unwrap();
    let group = Group::alone(None).unwrap();
    assert_eq!(code(Optimizer::new(&group, Some(&config))), Code::InvalidArgument);
    // without Key::Device
}
