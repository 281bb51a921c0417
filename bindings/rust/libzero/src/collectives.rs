//! Collectives over slices of a group's ranks. Each waits for the other ranks, at most until the group's deadline.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

use libzero_sys as sys;

use crate::element::Element;
use crate::enums::ReduceOp;
use crate::error::{check, Result};
use crate::group::{Group, NO_STREAM};

/// What C takes: an address, elements, an address, elements; the second writable. Both stay borrowed.
struct Slices<'a, T> {
    send: *const c_void,
    send_count: i64,
    recv: *mut c_void,
    recv_count: i64,
    data: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element> Slices<'a, T> {
    fn new(send: &'a [T], recv: &'a mut [T]) -> Self {
        Slices {
            send: send.as_ptr().cast(),
            send_count: send.len() as i64,
            recv: recv.as_mut_ptr().cast(),
            recv_count: recv.len() as i64,
            data: PhantomData,
        }
    }

    /// Both are ranges of `data`, which must be within it.
    fn in_place(data: &'a mut [T], send: Range<usize>, recv: Range<usize>) -> Self {
        assert!(send.start <= send.end && send.end <= data.len());
        assert!(recv.start <= recv.end && recv.end <= data.len());
        let first = data.as_mut_ptr();
        Slices {
            send: first.wrapping_add(send.start).cast(),
            send_count: send.len() as i64,
            recv: first.wrapping_add(recv.start).cast(),
            recv_count: recv.len() as i64,
            data: PhantomData,
        }
    }
}

/// Shares are those of [`Group::share`]. The forms that end in `_in_place` read and write one slice.
impl Group {
    /// `recv` = `op` over the ranks' `send`.
    pub fn all_reduce<T: Element>(&self, send: &[T], recv: &mut [T], op: ReduceOp) -> Result<()> {
        self.call_all_reduce(&Slices::new(send, recv), op)
    }

    /// `data` = `op` over the ranks' `data`.
    pub fn all_reduce_in_place<T: Element>(&self, data: &mut [T], op: ReduceOp) -> Result<()> {
        let all = 0..data.len();
        self.call_all_reduce(&Slices::in_place(data, all.clone(), all), op)
    }

    /// `recv` = this rank's share of `op` over the ranks' `send`.
    pub fn reduce_scatter<T: Element>(&self, send: &[T], recv: &mut [T], op: ReduceOp) -> Result<()> {
        self.call_reduce_scatter(&Slices::new(send, recv), op)
    }

    /// This rank's share of `data`, which is returned, becomes its share of `op` over the ranks' `data`.
    pub fn reduce_scatter_in_place<'a, T: Element>(&self, data: &'a mut [T], op: ReduceOp) -> Result<&'a mut [T]> {
        let own = self.share(data.len(), self.rank()?)?;
        self.call_reduce_scatter(&Slices::in_place(data, 0..data.len(), own.clone()), op)?;
        Ok(&mut data[own])
    }

    /// `recv` = the ranks' shares one after another; `send` is this rank's.
    pub fn all_gather<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        self.call_all_gather(&Slices::new(send, recv))
    }

    /// `data` = the ranks' shares one after another; this rank's is in its place already.
    pub fn all_gather_in_place<T: Element>(&self, data: &mut [T]) -> Result<()> {
        let own = self.share(data.len(), self.rank()?)?;
        self.call_all_gather(&Slices::in_place(data, own, 0..data.len()))
    }

    /// `data` of every rank = `data` of root.
    pub fn broadcast<T: Element>(&self, data: &mut [T], root: usize) -> Result<()> {
        // SAFETY: the handle is the group's, and `data` is a slice of the dtype that is named.
        check(unsafe {
            sys::zero_group_broadcast(self.as_ptr(), data.as_mut_ptr().cast(), data.len() as i64, T::DTYPE.raw(), root as i64, NO_STREAM)
        })
    }

    /// `recv` on root = `op` over the ranks' `send`; elsewhere it is empty.
    pub fn reduce<T: Element>(&self, send: &[T], recv: &mut [T], op: ReduceOp, root: usize) -> Result<()> {
        self.call_reduce(&Slices::new(send, recv), op, root)
    }

    /// `data` on root = `op` over the ranks' `data`; elsewhere it stays as it is.
    pub fn reduce_in_place<T: Element>(&self, data: &mut [T], op: ReduceOp, root: usize) -> Result<()> {
        let all = 0..data.len();
        let recv = if self.rank()? == root { all.clone() } else { 0..0 };
        self.call_reduce(&Slices::in_place(data, all, recv), op, root)
    }

    /// `recv` on root = the ranks' shares of `total` elements one after another; elsewhere it is empty. `send` is this rank's share.
    pub fn gather<T: Element>(&self, send: &[T], recv: &mut [T], total: usize, root: usize) -> Result<()> {
        self.call_gather(&Slices::new(send, recv), total, root)
    }

    /// `data` on root = the ranks' shares of its elements one after another, where root's is in its place already; elsewhere `data` is
    /// this rank's share of `total` elements.
    pub fn gather_in_place<T: Element>(&self, data: &mut [T], total: usize, root: usize) -> Result<()> {
        let all = 0..data.len();
        let slices = if self.rank()? == root {
            let own = self.own_of(data.len(), total, root)?;
            Slices::in_place(data, own, all)
        } else {
            Slices::in_place(data, all, 0..0)
        };
        self.call_gather(&slices, total, root)
    }

    /// `recv` = this rank's share of the `total` elements of `send` on root; elsewhere `send` is empty.
    pub fn scatter<T: Element>(&self, send: &[T], recv: &mut [T], total: usize, root: usize) -> Result<()> {
        self.call_scatter(&Slices::new(send, recv), total, root)
    }

    /// `data` on root is the whole, and its own share stays there; elsewhere `data` = this rank's share of the `total` elements.
    pub fn scatter_in_place<T: Element>(&self, data: &mut [T], total: usize, root: usize) -> Result<()> {
        let all = 0..data.len();
        let slices = if self.rank()? == root {
            let own = self.own_of(data.len(), total, root)?;
            Slices::in_place(data, all, own)
        } else {
            Slices::in_place(data, 0..0, all)
        };
        self.call_scatter(&slices, total, root)
    }

    /// Block `r` of `recv` = block of this rank in the `send` of rank `r`.
    pub fn all_to_all<T: Element>(&self, send: &[T], recv: &mut [T]) -> Result<()> {
        let slices = Slices::new(send, recv);
        // SAFETY: as in `call_all_reduce`.
        check(unsafe {
            sys::zero_group_all_to_all(
                self.as_ptr(),
                slices.send,
                slices.send_count,
                slices.recv,
                slices.recv_count,
                T::DTYPE.raw(),
                NO_STREAM,
            )
        })
    }

    /// Returns when every rank has called it.
    pub fn barrier(&self) -> Result<()> {
        // SAFETY: the handle is the group's.
        check(unsafe { sys::zero_group_barrier(self.as_ptr()) })
    }

    /// This rank's share of `total` items for the next step, by the speeds of all ranks: a multiple of `unit`. `seconds` is what this
    /// rank's newest `items` took, without waits for other ranks; 0 where nothing was measured.
    pub fn balance(&self, seconds: f64, items: usize, total: usize, unit: usize) -> Result<usize> {
        let mut share = 0;
        // SAFETY: the handle is the group's, and the result goes to a local.
        check(unsafe { sys::zero_group_balance(self.as_ptr(), seconds, items as i64, total as i64, unit as i64, &mut share) })?;
        Ok(share as usize)
    }

    /// Root's share of its `count` elements, or what there is of it where they are fewer than `total`, which libzero then says.
    fn own_of(&self, count: usize, total: usize, root: usize) -> Result<Range<usize>> {
        let own = self.share(total, root)?;
        Ok(own.start.min(count)..own.end.min(count))
    }

    fn call_all_reduce<T: Element>(&self, slices: &Slices<T>, op: ReduceOp) -> Result<()> {
        // SAFETY: the handle is the group's, and `slices` are slices of the dtype that is named.
        check(unsafe {
            sys::zero_group_all_reduce(
                self.as_ptr(),
                slices.send,
                slices.send_count,
                slices.recv,
                slices.recv_count,
                T::DTYPE.raw(),
                op.raw(),
                NO_STREAM,
            )
        })
    }

    fn call_reduce_scatter<T: Element>(&self, slices: &Slices<T>, op: ReduceOp) -> Result<()> {
        // SAFETY: as in `call_all_reduce`.
        check(unsafe {
            sys::zero_group_reduce_scatter(
                self.as_ptr(),
                slices.send,
                slices.send_count,
                slices.recv,
                slices.recv_count,
                T::DTYPE.raw(),
                op.raw(),
                NO_STREAM,
            )
        })
    }

    fn call_all_gather<T: Element>(&self, slices: &Slices<T>) -> Result<()> {
        // SAFETY: as in `call_all_reduce`.
        check(unsafe {
            sys::zero_group_all_gather(
                self.as_ptr(),
                slices.send,
                slices.send_count,
                slices.recv,
                slices.recv_count,
                T::DTYPE.raw(),
                NO_STREAM,
            )
        })
    }

    fn call_reduce<T: Element>(&self, slices: &Slices<T>, op: ReduceOp, root: usize) -> Result<()> {
        // SAFETY: as in `call_all_reduce`.
        check(unsafe {
            sys::zero_group_reduce(
                self.as_ptr(),
                slices.send,
                slices.send_count,
                slices.recv,
                slices.recv_count,
                T::DTYPE.raw(),
                op.raw(),
                root as i64,
                NO_STREAM,
            )
        })
    }

    fn call_gather<T: Element>(&self, slices: &Slices<T>, total: usize, root: usize) -> Result<()> {
        // SAFETY: as in `call_all_reduce`.
        check(unsafe {
            sys::zero_group_gather(
                self.as_ptr(),
                slices.send,
                slices.send_count,
                slices.recv,
                slices.recv_count,
                total as i64,
                T::DTYPE.raw(),
                root as i64,
                NO_STREAM,
            )
        })
    }

    fn call_scatter<T: Element>(&self, slices: &Slices<T>, total: usize, root: usize) -> Result<()> {
        // SAFETY: as in `call_all_reduce`.
        check(unsafe {
            sys::zero_group_scatter(
                self.as_ptr(),
                slices.send,
                slices.send_count,
                slices.recv,
                slices.recv_count,
                total as i64,
                T::DTYPE.raw(),
                root as i64,
                NO_STREAM,
            )
        })
    }
}
