//! The arguments of the runtime's functions as the simulated functions get them: handles and addresses as
//! numbers, and pointers with the rights that the contract of [`entry`](super) gives.

use std::ffi::{CStr, c_char, c_void};

use crate::fault::{Outcome, fail};
use crate::sys;

pub(super) type Handle = *mut c_void;

/// An argument of a function of the runtime.
pub(super) trait Argument {
    /// What the simulated function gets.
    type Received;

    /// Returns what the simulated function gets.
    ///
    /// # Safety
    /// The argument keeps the contract of [`entry`](super) during the call.
    unsafe fn received(self) -> Self::Received;
}

/// Refuses a null pointer, before the call has any effect.
pub(super) fn refuse_null<T>(pointer: *const T) -> Outcome {
    if pointer.is_null() {
        return fail(sys::ACL_ERROR_INVALID_PARAM, "a pointer argument is null");
    }
    Ok(())
}

/// The place of a result: null, or valid for a write.
pub(super) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Refuses a null pointer, before the call has any effect.
    pub fn check(&self) -> Outcome {
        refuse_null(self.0)
    }

    /// Writes the result.
    pub fn write(self, value: T) -> Outcome {
        self.check()?;
        // SAFETY: the pointer is not null, hence valid by the contract of `entry` (`# Safety`).
        unsafe { self.0.write(value) };
        Ok(())
    }
}

impl Out<Handle> {
    /// Writes a handle or an address.
    pub fn handle(self, value: u64) -> Outcome {
        self.write(value as Handle)
    }
}

/// A pointer to data: null, or valid for reads.
pub(super) struct In<T>(*const T);

/// A string: null, or ended by a zero byte.
pub(super) type Text = In<c_char>;

impl<T> In<T> {
    pub fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns the data; refuses a null pointer.
    pub fn get(&self) -> Outcome<&T> {
        refuse_null(self.0)?;
        // SAFETY: the pointer is not null, hence valid by the contract of `entry` (`# Safety`).
        Ok(unsafe { &*self.0 })
    }
}

impl Text {
    /// Returns the string; refuses a null pointer.
    pub fn text(&self) -> Outcome<&CStr> {
        refuse_null(self.0)?;
        // SAFETY: the pointer is not null, hence a string by the contract of `entry` (`# Safety`).
        Ok(unsafe { CStr::from_ptr(self.0) })
    }
}

macro_rules! arguments {
    ($($ty:ty => $received:ty: |$value:ident| $made:expr;)*) => {$(
        impl Argument for $ty {
            type Received = $received;
            unsafe fn received(self) -> $received {
                let $value = self;
                $made
            }
        }
    )*};
}

arguments! {
    i32 => i32: |value| value;
    u32 => u32: |value| value;
    u64 => u64: |value| value;
    usize => usize: |value| value;
    *mut c_void => u64: |handle| handle as u64;
    *const c_void => u64: |address| address as u64;
    *mut *mut c_void => Out<Handle>: |to| Out(to);
    *mut u32 => Out<u32>: |to| Out(to);
    *mut i32 => Out<i32>: |to| Out(to);
    *mut i64 => Out<i64>: |to| Out(to);
    *mut usize => Out<usize>: |to| Out(to);
    *mut f32 => Out<f32>: |to| Out(to);
    *const c_char => Text: |from| In(from);
    *const sys::aclrtBinaryLoadOptions => In<sys::aclrtBinaryLoadOptions>: |from| In(from);
    *mut sys::aclrtBinaryLoadOptions => In<sys::aclrtBinaryLoadOptions>: |from| In(from);
    *mut sys::aclrtLaunchKernelCfg => In<sys::aclrtLaunchKernelCfg>: |from| In(from);
}
