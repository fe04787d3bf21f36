//! Tests that need their process for themselves: they count its allocations and threads, fork it, replace its panic hook, or use
//! the simulated machine without a session. [`avsg_testkit::alone::turn`] lets one run at a time.

mod acl_sys;
mod fork;
mod hugepages;
mod no_alloc;
#[path = "../ascend/prerequisites.rs"]
mod prerequisites;
