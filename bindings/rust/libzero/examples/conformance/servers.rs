//! Scenarios of parameter servers. Rank 0 is the server.

use libzero::{Config, Group, Key, Result, Server, ServerOrder, ServerResult};

use crate::lines::{error, hash, join, line};
use crate::ranks;
use crate::values::array;

const COUNT: usize = 600;

pub fn print() -> Result<()> {
    let said = ranks::run(3, |group, rank| {
        let mut server = sealed(&group, ServerOrder::RoundRobin)?;
        if rank != 0 {
            work(&mut server, rank, 3)?;
            return Ok(None);
        }
        let (result, params) = serve(&mut server)?;
        Ok(Some(format!("{params} {} {} {}", result.push_count, result.pull_count, result.greatest_age)))
    })?;
    line("server-rounds", join(said.into_iter().flatten()));
    let said = ranks::run(3, |group, rank| {
        let mut server = sealed(&group, ServerOrder::Arrival)?;
        if rank != 0 {
            work(&mut server, rank, 1)?;
            return Ok(None);
        }
        server.replay(&[32768, 32769, 1, 0])?;
        let (_, params) = serve(&mut server)?;
        let record: Vec<u8> = server.record()?.into_iter().flat_map(u16::to_le_bytes).collect();
        Ok(Some(format!("{params} {}", hash(&record))))
    })?;
    line("server-replay", join(said.into_iter().flatten()));
    let said = ranks::run(2, |group, rank| {
        let mut server = sealed(&group, ServerOrder::RoundRobin)?;
        if rank == 0 {
            let refused = error(server.push(&[0.0; COUNT]));
            server.run()?;
            return Ok(refused);
        }
        let refused = error(server.run());
        server.leave()?;
        Ok(refused)
    })?;
    line("server-roles", join(said));
    Ok(())
}

fn sealed(group: &Group, order: ServerOrder) -> Result<Server> {
    let mut config = Config::new()?;
    config.set(Key::ServerOrder, order)?;
    let mut server = Server::new(group, COUNT, Some(&config))?;
    server.seal()?;
    Ok(server)
}

/// Pulls, and pushes v(i, 10 t + rank), in rounds t.
fn work(server: &mut Server, rank: usize, rounds: usize) -> Result<()> {
    let mut params = [0.0; COUNT];
    for t in 0..rounds {
        server.pull(&mut params)?;
        server.push(&array(COUNT, 10 * t + rank))?;
    }
    server.leave()
}

/// Writes v(i, 0), serves, and returns the hash of the parameters.
fn serve(server: &mut Server) -> Result<(ServerResult, String)> {
    let count = server.shard_range()?.len();
    server.shard_mut()?.copy_from_slice(&array(count, 0));
    let result = server.run()?;
    Ok((result, hash(server.shard()?)))
}
