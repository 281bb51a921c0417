//! Messages between two ranks of a group.

use std::ptr::{self, NonNull};

use libzero_sys as sys;

use crate::element::Element;
use crate::enums::Code;
use crate::error::{check, Error, Result};
use crate::group::{Group, NO_STREAM};

/// A send meets the receive that its peer makes with as many elements of the same type; messages between two ranks keep their order.
impl Group {
    /// Returns when `send` is free again, which may be only when the peer receives.
    pub fn send<T: Element>(&self, send: &[T], peer: usize) -> Result<()> {
        // SAFETY: the handle is the group's, and `send` is a slice of the dtype that is named.
        check(unsafe {
            sys::zero_group_send(self.as_ptr(), send.as_ptr().cast(), send.len() as i64, T::DTYPE.raw(), peer as i64, NO_STREAM)
        })
    }

    /// Fills `recv` with what the peer sends.
    pub fn recv<T: Element>(&self, recv: &mut [T], peer: usize) -> Result<()> {
        // SAFETY: the handle is the group's, and `recv` is a slice of the dtype that is named.
        check(unsafe {
            sys::zero_group_recv(self.as_ptr(), recv.as_mut_ptr().cast(), recv.len() as i64, T::DTYPE.raw(), peer as i64, NO_STREAM)
        })
    }

    /// Sends to one rank and receives from one, the same or another, at the same time: ranks that exchange do not wait for each other.
    pub fn exchange<T: Element>(&self, send: &[T], to: usize, recv: &mut [T], from: usize) -> Result<()> {
        self.check_source(from)?;
        let sending = self.begin_send(send, to)?;
        self.recv(recv, from)?;
        sending.wait()
    }

    /// Before anything is sent: a receive that is refused would leave the send to its deadline, and the group lost.
    fn check_source(&self, from: usize) -> Result<()> {
        let (rank, size) = (self.rank()?, self.size()?);
        if from < size && from != rank {
            return Ok(());
        }
        let text = format!("from is {from}, but must be a rank of 0 .. {} other than this one, {rank}", size - 1);
        Err(Error::new(Code::InvalidArgument, text))
    }

    fn begin_send<'a, T: Element>(&self, send: &'a [T], to: usize) -> Result<Sending<'a, T>> {
        let mut request = ptr::null_mut();
        // SAFETY: as in `send`; the slice stays borrowed until the request is done, which its drop waits for.
        check(unsafe {
            sys::zero_group_send_async(
                self.as_ptr(),
                send.as_ptr().cast(),
                send.len() as i64,
                T::DTYPE.raw(),
                to as i64,
                NO_STREAM,
                &mut request,
            )
        })?;
        Ok(Sending { request: NonNull::new(request).expect("a new request has a handle"), _send: send })
    }
}

/// A send under way. It must be dropped: only within this file, where nothing forgets it.
struct Sending<'a, T> {
    request: NonNull<sys::zero_request>,
    _send: &'a [T],
}

impl<T> Sending<'_, T> {
    fn wait(self) -> Result<()> {
        // SAFETY: the handle is this request's.
        check(unsafe { sys::zero_request_wait(self.request.as_ptr()) })
    }
}

impl<T> Drop for Sending<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the handle is this request's and is not used again. A send that has not ended is waited for.
        unsafe { sys::zero_request_release(self.request.as_ptr()) }
    }
}
