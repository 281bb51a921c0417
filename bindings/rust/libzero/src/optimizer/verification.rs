//! Whether memory holds what libzero wrote.

use libzero_sys as sys;

use crate::enums::{Finding, Slot};
use crate::error::{check, Result};
use crate::optimizer::Optimizer;
use crate::stats::init;

/// What [`Optimizer::verify`] found, the same on all ranks but for the last two fields. With [`Finding::None`] the fields from `rank` to
/// `count` say nothing; otherwise they are of the first piece that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyResult {
    /// What is wrong.
    pub found: Finding,
    /// Pieces of at most 65536 bytes that are wrong, on all ranks together.
    pub chunk_count: i64,
    /// The rank that holds wrong bits.
    pub rank: i64,
    /// -1, or a rank that differs from `rank`, where either may be wrong.
    pub other_rank: i64,
    /// The tensor's id.
    pub param: i64,
    /// The slot.
    pub slot: Slot,
    /// The first entry of the slot that is wrong.
    pub offset: i64,
    /// Entries from there on within which all wrong bits of the piece lie.
    pub count: i64,
    /// Bytes of this rank that were compared with other ranks'.
    pub replica_nbytes: i64,
    /// Bytes of this rank that were compared with what the last step left.
    pub shard_nbytes: i64,
}

impl From<sys::zero_verify_result> for VerifyResult {
    fn from(result: sys::zero_verify_result) -> Self {
        VerifyResult {
            found: Finding::from_raw(result.found as i32),
            chunk_count: result.chunk_count,
            rank: result.rank,
            other_rank: result.other_rank,
            param: result.param,
            slot: Slot::from_raw(result.slot as i32),
            offset: result.offset,
            count: result.count,
            replica_nbytes: result.replica_nbytes,
            shard_nbytes: result.shard_nbytes,
        }
    }
}

impl Optimizer {
    /// Tells whether what several ranks keep alike has the same bits on all of them, and, within the window of
    /// [`Key::VerifyEvery`](crate::Key::VerifyEvery), whether each rank's own part is what the last step left. A collective between steps.
    pub fn verify(&mut self) -> Result<VerifyResult> {
        let mut result = init(sys::zero_verify_result_init)?;
        // SAFETY: the handle is the optimizer's, and `result` knows its own size.
        check(unsafe { sys::zero_optimizer_verify(self.as_ptr(), self.stream, &mut result) })?;
        Ok(VerifyResult::from(result))
    }
}
