//! Tests that need their process for themselves: they count its memory, fork it, start many processes, or take a role
//! whose lock a started process holds for a moment. [`avsg_testkit::alone::turn`] lets one run at a time.

mod bookkeeping;
mod fork;
mod limits;
mod no_alloc;
mod share;
