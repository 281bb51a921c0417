//! Scenarios of groups.

use libzero::{Group, ReduceOp, Result};

use crate::lines::{error, hash, join, line, status};
use crate::ranks;
use crate::values::{array, Value};

const RANKS: usize = 3;
const COUNT: usize = 10;

pub fn print() -> Result<()> {
    places()?;
    splits()?;
    all_reduces()?;
    shared()?;
    rooted()?;
    messages()?;
    single()
}

fn places() -> Result<()> {
    let places = ranks::run(RANKS, |group, _| {
        let (local_rank, local_size) = (group.local_rank()?, group.local_size()?);
        Ok(format!("{}/{}/{local_rank}/{local_size}/{}", group.rank()?, group.size()?, group.host_count()?))
    })?;
    line("places", join(places));
    let shares = ranks::run(RANKS, |group, rank| {
        let share = group.share(COUNT, rank)?;
        Ok(format!("{}:{}", share.start, share.len()))
    })?;
    line("shares", join(shares));
    let errors = ranks::run(RANKS, |group, _| Ok(error(group.share(COUNT, 3))))?;
    line("share-error", &errors[0]);
    Ok(())
}

fn splits() -> Result<()> {
    let places = ranks::run(RANKS, |group, rank| {
        let part = group.split([0, 1, 0][rank], [2, 1, 0][rank])?.expect("every rank has a color");
        Ok(format!("{}/{}", part.rank()?, part.size()?))
    })?;
    line("split", join(places));
    let sizes = ranks::run(RANKS, |group, rank| match group.split([0, -1, 0][rank], 0)? {
        Some(part) => Ok(part.size()?.to_string()),
        None => Ok("-".into()),
    })?;
    line("split-none", join(sizes));
    Ok(())
}

fn all_reduces() -> Result<()> {
    let ops = [("sum", ReduceOp::Sum), ("avg", ReduceOp::Avg), ("min", ReduceOp::Min), ("max", ReduceOp::Max), ("prod", ReduceOp::Prod)];
    for (name, op) in ops {
        line(&format!("all-reduce-{name}-f32"), all_reduce::<f32>(op)?);
        line(&format!("all-reduce-{name}-f64"), all_reduce::<f64>(op)?);
        line(&format!("all-reduce-{name}-i32"), all_reduce::<i32>(op)?);
        line(&format!("all-reduce-{name}-i64"), all_reduce::<i64>(op)?);
        line(&format!("all-reduce-{name}-u8"), all_reduce::<u8>(op)?);
    }
    let results = ranks::run(RANKS, |group, rank| {
        let mut data = array::<f32>(COUNT, rank);
        group.all_reduce_in_place(&mut data, ReduceOp::Sum)?;
        Ok(hash(&data))
    })?;
    line("all-reduce-in-place", join(results));
    let empty = ranks::run(RANKS, |group, _| Ok(status(group.all_reduce::<f32>(&[], &mut [], ReduceOp::Sum))))?;
    line("all-reduce-empty", join(empty));
    Ok(())
}

fn all_reduce<T: Value>(op: ReduceOp) -> Result<String> {
    let results = ranks::run(RANKS, |group, rank| {
        let mut recv = vec![T::default(); COUNT];
        group.all_reduce(&array::<T>(COUNT, rank), &mut recv, op)?;
        Ok(hash(&recv))
    })?;
    Ok(join(results))
}

/// As many elements as this rank's share of the whole has.
fn share_of(group: &Group, rank: usize) -> Result<usize> {
    Ok(group.share(COUNT, rank)?.len())
}

fn shared() -> Result<()> {
    let results = ranks::run(RANKS, |group, rank| {
        let mut recv = vec![0f32; share_of(&group, rank)?];
        group.reduce_scatter(&array(COUNT, rank), &mut recv, ReduceOp::Sum)?;
        Ok(hash(&recv))
    })?;
    line("reduce-scatter", join(results));
    let results = ranks::run(RANKS, |group, rank| {
        let mut recv = vec![0f32; COUNT];
        group.all_gather(&array(share_of(&group, rank)?, rank), &mut recv)?;
        Ok(hash(&recv))
    })?;
    line("all-gather", join(results));
    Ok(())
}

fn rooted() -> Result<()> {
    let results = ranks::run(RANKS, |group, rank| {
        let mut data = array::<f32>(COUNT, rank);
        group.broadcast(&mut data, 1)?;
        Ok(hash(&data))
    })?;
    line("broadcast", join(results));
    let results = ranks::run(RANKS, |group, rank| {
        let mut recv = vec![0f32; if rank == 2 { COUNT } else { 0 }];
        group.reduce(&array(COUNT, rank), &mut recv, ReduceOp::Max, 2)?;
        Ok(hash(&recv))
    })?;
    line("reduce", &results[2]);
    let results = ranks::run(RANKS, |group, rank| {
        let mut recv = vec![0f32; if rank == 0 { COUNT } else { 0 }];
        group.gather(&array(share_of(&group, rank)?, rank), &mut recv, COUNT, 0)?;
        Ok(hash(&recv))
    })?;
    line("gather", &results[0]);
    let results = ranks::run(RANKS, |group, rank| {
        let mut recv = vec![0f32; share_of(&group, rank)?];
        let send = array(if rank == 1 { COUNT } else { 0 }, 1);
        group.scatter(&send, &mut recv, COUNT, 1)?;
        Ok(hash(&recv))
    })?;
    line("scatter", join(results));
    let results = ranks::run(RANKS, |group, rank| {
        let mut recv = vec![0f32; 12];
        group.all_to_all(&array(12, rank), &mut recv)?;
        Ok(hash(&recv))
    })?;
    line("all-to-all", join(results));
    Ok(())
}

fn messages() -> Result<()> {
    let results = ranks::run(RANKS, |group, rank| {
        let mut data = array::<f32>(5, 0);
        if rank > 0 {
            group.recv(&mut data, rank - 1)?;
        }
        let got = hash(&data);
        if rank > 0 {
            data.iter_mut().for_each(|value| *value += 1.0);
        }
        if rank + 1 < RANKS {
            group.send(&data, rank + 1)?;
        }
        Ok(got)
    })?;
    line("send-recv", &results[2]);
    let statuses = ranks::run(RANKS, |group, _| Ok(status(group.barrier())))?;
    line("barrier", join(statuses));
    let shares = ranks::run(RANKS, |group, rank| {
        let (seconds, items) = [(1.0, 192), (1.5, 240), (3.0, 208)][rank];
        Ok(group.balance(seconds, items, 640, 16)?.to_string())
    })?;
    line("balance", join(shares));
    Ok(())
}

fn single() -> Result<()> {
    let mut recv = vec![0f32; COUNT];
    Group::alone(None)?.all_reduce(&array(COUNT, 0), &mut recv, ReduceOp::Sum)?;
    line("world-of-one", hash(&recv));
    let group = Group::alone(None)?;
    let outcome = group.all_reduce(&array::<f32>(COUNT, 0), &mut recv[..9], ReduceOp::Sum);
    line("all-reduce-lengths", error(outcome));
    line("bad-root", error(group.broadcast(&mut recv, 5)));
    line("balance-error", error(group.balance(1.0, 8, 63, 8)));
    Ok(())
}
