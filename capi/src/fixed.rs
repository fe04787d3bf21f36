//! What never changes in an engine and in a plan, and is read also during a step with them.

use crate::buffer::Buffers;
use crate::engine::avsg_engine;
use crate::engine_info::{avsg_engine_info, engine_info};
use crate::handle::Object;
use crate::outputs::Addresses;
use crate::plan::avsg_plan;
use crate::status::Result;
use avsg::engine::Engine;
use avsg::plan::Plan;

impl Object for Engine {
    type C = avsg_engine;
    const KIND: u64 = 2;
    const NAME: &'static str = "engine";
    type Fixed = (avsg_engine_info, Buffers);

    fn fixed(&self) -> Result<Self::Fixed> {
        Ok((engine_info(self), Buffers::new(self.buffer())?))
    }

    fn end(self) -> Result<()> {
        Ok(self.close()?)
    }
}

impl Object for Plan {
    type C = avsg_plan;
    const KIND: u64 = 3;
    const NAME: &'static str = "plan";
    type Fixed = Addresses;

    fn fixed(&self) -> Result<Addresses> {
        Ok(Addresses::new(self))
    }
}
