//! Handles: numbers that are never valid pointers.

use std::collections::BTreeMap;

use crate::fault::{CallFailure, Outcome};
use crate::sys;

/// The objects of one kind, by handle.
#[derive(Debug)]
pub(crate) struct Registry<T> {
    what: &'static str,
    base: u64,
    count: u64,
    objects: BTreeMap<u64, T>,
}

impl<T> Registry<T> {
    /// Returns an empty registry; `kind` is a part of its handles, so that kinds have distinct
    /// handles.
    pub fn new(what: &'static str, kind: u64) -> Self {
        // The base is outside of the address space of any process, so a dereferenced handle faults.
        Self { what, base: 0xA5C1_0000_0000_0000 | kind << 40, count: 0, objects: BTreeMap::new() }
    }

    /// Adds an object and returns its handle. Handles are never reused.
    pub fn add(&mut self, value: T) -> u64 {
        self.count += 1;
        let handle = self.base + 16 * self.count;
        self.objects.insert(handle, value);
        handle
    }

    pub fn get(&self, handle: u64) -> Outcome<&T> {
        self.objects.get(&handle).ok_or_else(|| unknown(self.what, handle))
    }

    pub fn get_mut(&mut self, handle: u64) -> Outcome<&mut T> {
        self.objects.get_mut(&handle).ok_or_else(|| unknown(self.what, handle))
    }

    pub fn remove(&mut self, handle: u64) -> Outcome<T> {
        self.objects.remove(&handle).ok_or_else(|| unknown(self.what, handle))
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.objects.iter().map(|(&handle, value)| (handle, value))
    }

    /// Removes and returns all objects for which `which` is true.
    pub fn drain(&mut self, which: impl Fn(&T) -> bool) -> Vec<(u64, T)> {
        let hits: Vec<u64> = self.iter().filter(|(_, v)| which(v)).map(|(h, _)| h).collect();
        hits.into_iter().filter_map(|h| Some((h, self.objects.remove(&h)?))).collect()
    }

    /// Returns a line for each object.
    pub fn leaks(&self) -> impl Iterator<Item = String> + '_ {
        self.objects.keys().map(|handle| format!("{} {handle:#x}", self.what))
    }
}

fn unknown(what: &str, handle: u64) -> CallFailure {
    let null = handle == 0;
    let code = if null { sys::ACL_ERROR_INVALID_PARAM } else { sys::ACL_ERROR_RT_PARAM_INVALID };
    CallFailure { code, text: format!("{handle:#x} is not the handle of an existing {what}") }
}
