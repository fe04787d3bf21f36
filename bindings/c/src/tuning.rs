//! How the tables and the kernels of an engine work.

use avsg::device::params::{Lifetime, Params};

use crate::status::{Result, choice, ensure};
use avsg::copy::Copier;
use avsg::engine::MachineChoice;

/// The table that maps ids to slots.
#[repr(C)]
pub enum avsg_table {
    /// Several links per slot, with the least valuable slots as victims. Hit rates are those of
    /// exact LRU or better.
    AVSG_TABLE_WIDE = 0,
    /// The paper's table, bit for bit.
    AVSG_TABLE_PAPER = 1,
}

/// The rule that chooses the slots which misses replace.
#[repr(C)]
pub enum avsg_lifetime {
    /// AVSG_LIFETIME_LEARNED for a wide table of at least 2 K slots, and with 2 links per slot fewer than
    /// 4 K, else AVSG_LIFETIME_CONSTANT.
    AVSG_LIFETIME_AUTO = 0,
    /// The constant `life`, which evicts the least recently used slot.
    AVSG_LIFETIME_CONSTANT = 1,
    /// The slots that are least likely to be used soon, which each request learns from its own
    /// selections: by the time since their last use and the number of uses. Only for a wide table.
    AVSG_LIFETIME_LEARNED = 2,
}

/// The vector instructions that the device "cpu" runs its kernels with.
#[repr(C)]
pub enum avsg_machine {
    /// The fastest of the CPU, as the first engine of the process measures it.
    AVSG_MACHINE_AUTO = 0,
    /// AVX2.
    AVSG_MACHINE_AVX2 = 1,
    /// AVX-512.
    AVSG_MACHINE_AVX512 = 2,
    /// NEON.
    AVSG_MACHINE_NEON = 3,
}

/// How the device "cpu" copies rows.
#[repr(C)]
pub enum avsg_copier {
    /// AVSG_COPIER_PREFETCH for rows of fewer than 1024 bytes, or 4096 on CPUs with AVX-512 or NEON, else
    /// AVSG_COPIER_STREAM, both 4 rows ahead.
    AVSG_COPIER_AUTO = 0,
    /// One memcpy for each row.
    AVSG_COPIER_PLAIN = 1,
    /// Vector copies with prefetch of both ends of a later row.
    AVSG_COPIER_PREFETCH = 2,
    /// Non-temporal stores with prefetch of the source of a later row.
    AVSG_COPIER_STREAM = 3,
}

/// How an engine works (`avsg_engine_config.tuning`): which slots misses replace, and what "cpu" would
/// otherwise measure. No choice changes the rows that attention reads. A link is an entry of a table, which
/// can point to a slot; an id is searched in up to R + 1 links, where R is 7 with 2 links per slot, and else 3.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_tuning {
    /// sizeof(avsg_tuning).
    pub size: usize,
    /// An `avsg_table`.
    pub table: i32,
    /// An `avsg_lifetime`.
    pub lifetime: i32,
    /// The constant lifetime in decode steps: 0 to 127 (1 to 127 in a paper table). 0 unless
    /// `lifetime` is AVSG_LIFETIME_CONSTANT.
    pub life: i32,
    /// Links per slot: 1, 2 or 4. 0 selects 1 for a paper table, and for a wide one 4 on "cpu" and 2 on
    /// an Ascend device, whose fast memory 4 do not fit with K = 2048 and S = 8192.
    pub spread: u32,
    /// An `avsg_machine`, used by "cpu".
    pub machine: i32,
    /// An `avsg_copier`, used by "cpu".
    pub copier: i32,
    /// The distance of the later row that AVSG_COPIER_PREFETCH and AVSG_COPIER_STREAM prefetch, in
    /// rows: 0 to 64; 0 prefetches nothing.
    pub copier_ahead: u32,
    /// Kernels that `avsg_engine_step` launches on an Ascend device. 1: a single kernel, which
    /// starts when all its cores are idle, and whose cores wait for each other between the stages.
    /// 2: one per stage, so that other streams can compute beside them. 0: one with a NULL stream,
    /// and two in a stream.
    pub launches: u32,
}

impl avsg_tuning {
    /// Returns the geometry, which the engine checks. A vector core has little fast memory.
    pub(crate) fn params(
        &self,
        [k, tokens, slots]: [u32; 3],
        on_vector_core: bool,
    ) -> Result<Params> {
        let compact = self.spread == 2 || (self.spread == 0 && on_vector_core);
        let wide = if compact { Params::compact } else { Params::wide };
        let tables = [wide(k, tokens, slots), Params::paper(k, tokens, slots)];
        let defaults = choice("table", self.table, &tables)?;
        // A value that the lifetime does not use would be ignored without a word.
        let (life, lifetime) = (self.life, self.lifetime);
        ensure!(
            life == 0 || lifetime == 1,
            "life is {life}, but lifetime is {lifetime}, which does not use it; set lifetime to \
             AVSG_LIFETIME_CONSTANT, or life to 0"
        );
        let fits = i8::try_from(life).is_ok();
        ensure!(fits, "life is {life}, but it must be 0..=127; 127 is plain LRU");
        let lifetimes = [defaults.lifetime, Lifetime::Constant(life as i8), Lifetime::Learned];
        let lifetime = choice("lifetime", lifetime, &lifetimes)?;
        let spread = if self.spread == 0 { defaults.spread } else { self.spread };
        Ok(Params { lifetime, spread, ..defaults })
    }

    /// Returns the method that copies rows; None leaves it to the engine.
    pub(crate) fn copier(&self) -> Result<Option<Copier>> {
        let ahead = self.copier_ahead as usize;
        ensure!(ahead <= 64, "copier_ahead is {ahead}, but it must be 0..=64; 1 or 4 is usual");
        let copiers = [Copier::Plain, Copier::Prefetch { ahead }, Copier::Stream { ahead }];
        let [plain, prefetch, stream] = copiers.map(Some);
        choice("copier", self.copier, &[None, plain, prefetch, stream])
    }

    /// Returns the vector instructions.
    pub(crate) fn machine(&self) -> Result<MachineChoice> {
        use MachineChoice::{Auto, Avx2, Avx512, Neon};
        choice("machine", self.machine, &[Auto, Avx2, Avx512, Neon])
    }

    /// Returns whether a step on an Ascend device is one kernel; None leaves it to the engine.
    pub(crate) fn one_launch(&self) -> Result<Option<bool>> {
        let launches = i32::try_from(self.launches).unwrap_or(i32::MAX);
        choice("launches", launches, &[None, Some(true), Some(false)])
    }
}
