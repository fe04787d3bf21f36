//! What this process has measured about its machine: the first engine measures, later ones look it up.

use heapless::LinearMap;
use spin::Mutex;

use crate::Result;

/// The results of a measurement, at most `N`, by what was measured.
pub(crate) struct Measured<K, V, const N: usize>(Mutex<LinearMap<K, V, N>>);

impl<K: Eq, V: Copy, const N: usize> Measured<K, V, N> {
    pub const fn new() -> Self {
        Self(Mutex::new(LinearMap::new()))
    }

    /// Returns the result for `key`. If it is not known, `measure` finds it, and it is kept while
    /// there is room. If two threads measure at the same time, both return the result of the first.
    ///
    /// The call never waits for the lock. While another thread has it, and for ever in a child that was
    /// forked meanwhile, the call measures again and returns its own result.
    pub fn get_or_measure(&self, key: K, measure: impl FnOnce() -> Result<V>) -> Result<V> {
        let known = self.0.try_lock().and_then(|results| results.get(&key).copied());
        if let Some(known) = known {
            return Ok(known);
        }
        let new = measure()?;
        let Some(mut results) = self.0.try_lock() else { return Ok(new) };
        if let Some(&first) = results.get(&key) {
            return Ok(first);
        }
        // A full map keeps what it has, and this length or set is measured for each engine.
        let _ = results.insert(key, new);
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invalid;

    fn failed() -> Result<u8> {
        Err(invalid!("measurement" is 0, but "none is expected here"; "none"))
    }

    #[test]
    fn the_first_result_of_a_key_is_kept_and_a_failure_is_not() {
        let known = Measured::<u8, u8, 2>::new();
        assert!(known.get_or_measure(1, failed).is_err());
        assert_eq!(known.get_or_measure(1, || Ok(10)).unwrap(), 10);
        assert_eq!(known.get_or_measure(1, failed).unwrap(), 10);
        // Another thread that measured the key meanwhile was first.
        let second = known.get_or_measure(2, || known.get_or_measure(2, || Ok(20)).map(|n| n + 1));
        assert_eq!(second.unwrap(), 20);
        assert_eq!(known.get_or_measure(3, || Ok(30)).unwrap(), 30, "a third result has no room");
        assert_eq!(known.get_or_measure(3, || Ok(31)).unwrap(), 31, "it is measured again");
    }

    #[test]
    fn a_child_that_was_forked_under_the_lock_measures_again() {
        unsafe extern "C" {
            fn fork() -> i32;
            fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
            fn _exit(code: i32) -> !;
        }
        let known = Measured::<u8, u8, 2>::new();
        known.get_or_measure(1, || Ok(10)).unwrap();
        let held = known.0.lock();
        // SAFETY: the child runs the code below only, which allocates nothing.
        let pid = unsafe { fork() };
        if pid == 0 {
            let again = matches!(known.get_or_measure(1, || Ok(11)), Ok(11));
            // SAFETY: the call ends the child.
            unsafe { _exit(i32::from(!again)) };
        }
        assert!(pid > 0, "fork");
        drop(held);
        let mut status = -1;
        // SAFETY: the process is this one's child, and `status` may be written.
        unsafe { waitpid(pid, &raw mut status, 0) };
        assert_eq!(status, 0, "the child failed");
        assert_eq!(known.get_or_measure(1, failed).unwrap(), 10);
    }
}
