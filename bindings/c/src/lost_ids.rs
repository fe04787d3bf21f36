//! The ids of a plan whose rows are not whole.

use crate::handle;
use crate::plan::avsg_plan;
use crate::sized::{self, OutPtr, check_capacity};
use crate::status::{avsg_status, enter};
use avsg::plan::Plan;
use avsg::rows;

/// Gives the ids of the rows of a file that a request of a plan missed and that are not whole: never written,
/// lost with a process, damaged, or cut off. A step, transfer or load that finds such rows in its layers is
/// AVSG_LOST_ROWS, and serves all other requests. `failed_row` of `avsg_plan_arrays` names a request that is
/// not served, and `failed_new` tells whether the last transfer of the plan found it, or an earlier one or
/// another plan: transfers leave it out from now on, of this plan and of other plans since its state was
/// empty, and its next plan finds it empty. Write these rows again, and repeat the step for it. The ids are
/// in the order of its misses. `count` receives their number, also if it is above `capacity`, which is
/// AVSG_INVALID; a `capacity` of 0 asks for `count` only. It is 0 for a request that is served, or that
/// another plan has lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_plan_get_lost_ids(
    plan: *const avsg_plan,
    request: usize,
    ids: *mut i32,
    capacity: usize,
    count: *mut usize,
) -> avsg_status {
    enter(|| {
        let out = contract!(OutPtr::new("count", count, 0)?);
        let plan = handle::shared::<Plan>(plan)?;
        rows::index("request", request, plan.requests())?;
        let count = plan.lost_ids(request).count();
        out.write(count);
        if capacity != 0 {
            check_capacity(count, capacity, "ids")?;
            let to = contract!(sized::array_mut("ids", ids, count)?);
            to.iter_mut().zip(plan.lost_ids(request)).for_each(|(to, id)| *to = id);
        }
        Ok(())
    })
}
