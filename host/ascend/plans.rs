//! The device memory of an engine's plans.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::acl::MemorySource;
use super::arrays::Arrays;
use crate::plan::Plan;
use crate::{Result, invalid};

/// The device memory of a plan. It is released after the plan is dropped.
struct PlanArrays {
    plan: Weak<()>,
    arrays: Arc<Arrays>,
}

/// The arrays of plans, including dropped ones that the stream may still write.
#[derive(Default)]
pub(super) struct Plans(Mutex<Vec<PlanArrays>>);

impl Plans {
    /// Allocates the arrays of a new plan. `idle` tells that no work uses the arrays of dropped
    /// plans, which are released then.
    pub fn prepare(&self, source: MemorySource<'_>, plan: &mut Plan, idle: bool) -> Result<()> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if idle {
            plans.retain(|known| known.plan.strong_count() > 0);
        }
        let (k, rows, requests) = (plan.k, plan.max_tokens, plan.max_requests);
        let arrays = Arrays::new(source, k, rows, requests)?;
        plan.device = Some(arrays.outputs());
        plans.push(PlanArrays { plan: Arc::downgrade(&plan.token), arrays: Arc::new(arrays) });
        Ok(())
    }

    /// Returns the arrays of a plan, or an error if it was made elsewhere.
    pub fn arrays(&mut self, plan: &Plan) -> Result<Arc<Arrays>> {
        let plans = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let known = plans.iter().find(|known| known.plan.as_ptr() == Arc::as_ptr(&plan.token));
        known.map(|known| Arc::clone(&known.arrays)).ok_or_else(|| {
            invalid!("plan" is "foreign", but "it was made for another device";
                "make it with this engine's new_plan")
        })
    }
}
