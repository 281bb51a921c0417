//! Scenarios of buffers.

use libzero::{Buffer, Group, ReduceOp, Result};

use crate::lines::{error, hash, join, line};
use crate::ranks;
use crate::values::array;

const RANKS: usize = 3;
const COUNT: usize = 1000;

pub fn print() -> Result<()> {
    let shards = ranks::run(RANKS, |group, _| {
        let range = Buffer::<f32>::new(&group, COUNT, None)?.shard_range()?;
        Ok(format!("{}:{}", range.start, range.len()))
    })?;
    line("shards", join(shards));
    let results = ranks::run(RANKS, write_read_whole)?;
    line("buffer-write-read", join(results.iter().map(|(read, _)| read)));
    line("buffer-whole", join(results.iter().map(|(_, whole)| whole)));
    let buffer = Buffer::<f32>::new(&Group::alone(None)?, COUNT, None)?;
    let _first = buffer.whole()?;
    line("buffer-whole-twice", error(buffer.whole()));
    let shards = ranks::run(RANKS, |group, rank| {
        let mut buffer = Buffer::<f32>::new(&group, COUNT, None)?;
        buffer.reduce_scatter(&array(COUNT, rank), ReduceOp::Avg)?;
        Ok(hash(buffer.shard()?))
    })?;
    line("buffer-reduce-scatter", join(shards));
    Ok(())
}

fn write_read_whole(group: Group, rank: usize) -> Result<(String, String)> {
    let mut buffer = Buffer::<f32>::new(&group, COUNT, None)?;
    buffer.write(300 * rank, &array(400, rank))?;
    let mut read = vec![0f32; 500];
    buffer.read(100 * rank, &mut read)?;
    let whole = buffer.whole()?;
    Ok((hash(&read), hash(&whole)))
}
