//! The options of `avsg bench match`.

use clap::Args;

use super::workload::Workload;
use crate::command::geometry::{MachineKind, TableKind, TableOptions};
use crate::command::output::Sinks;

#[derive(Args, Debug)]
#[command(
    after_help = "All contenders run the same steps in one run, in turns of 25 steps, so that noise affects all of \
                  them alike. The ids of a token are shuffled. The first 20 steps are not timed. Compare only \
                  ratios within one run. The times in the JSON are:\n  \
                  median_us        this operator on the chosen vector machine, up to the list of misses\n  \
                  over_constant    the same divided by that of rule constant:127, if the rule is learned\n  \
                  learn_us         what rule learned does after that in each step\n  \
                  emu_us           this operator on the vector machine emu, one lane at a time\n  \
                  scalar_us        the operator's table written by hand for a scalar core\n  \
                  dual_pointer_us  the previous step's rows as the buffer, matched by sort and two pointers\n  \
                  hashmap_lru_us   the standard HashMap and the lru crate\n  \
                  lru_crate_us     the lru crate without a HashMap\n\
                  They are medians over the timed steps. hit_rate is in percent and leaves out the first step."
)]
pub struct Options {
    #[command(flatten)]
    pub workload: Workload,
    /// K, the ids selected per token; from a trace with more, the K ids with the smallest hashes are
    /// kept, and a K above the trace's is skipped
    #[arg(long, value_name = "K,..", value_delimiter = ',', default_value = "256,512,1024,2048")]
    pub k: Vec<usize>,
    /// S, the slots per request and layer; multiples of 64 up to 65536; combinations with K above S
    /// are skipped
    #[arg(long, value_name = "S,..", value_delimiter = ',', default_value = "2048,8192")]
    pub slots: Vec<u32>,
    /// Kinds of hash table
    #[arg(
        long = "table",
        value_enum,
        value_name = "T,..",
        value_delimiter = ',',
        default_value = "paper,wide"
    )]
    pub tables: Vec<TableKind>,
    /// Links per slot of the wide table: 1, 2 or 4 [default: 4]
    #[arg(long, value_name = "N")]
    spread: Option<u32>,
    /// R, the links examined after the first; 0 to 15 [default: 3, or 7 with spread 2]
    #[arg(long, value_name = "R")]
    retries: Option<u32>,
    /// Lifetime rule: constant:L (least recently used; L 0 to 127, paper from 1), or learned (each
    /// request learns which slots to keep; wide only) [default: wide both constant:127 and learned,
    /// paper constant:16]
    #[arg(long, value_name = "RULE")]
    lifetime: Option<String>,
    /// Vector machine that runs the kernels; auto is the fastest that the CPU has
    #[arg(long, value_enum, default_value = "auto")]
    pub machine: MachineKind,
    /// Steps to time, 1 to 1000000; fewer if the trace is shorter
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub steps: usize,
    #[command(flatten)]
    pub sinks: Sinks,
}

impl Options {
    /// Returns the options of one kind of table. If one run measures both, an option that only `wide`
    /// accepts applies to `wide` only.
    pub fn table(&self, table: TableKind) -> TableOptions {
        let skip_wide_options = table == TableKind::Paper && self.tables.len() > 1;
        let learned = self.lifetime.as_ref().is_some_and(|rule| rule == "learned");
        TableOptions {
            table,
            spread: self.spread.filter(|_| !skip_wide_options),
            retries: self.retries,
            lifetime: self.lifetime.clone().filter(|_| !(skip_wide_options && learned)),
            primes: None,
        }
    }

    /// Returns the options of one kind of table with each lifetime rule to measure.
    pub fn rules(&self, table: TableKind) -> Vec<TableOptions> {
        let options = self.table(table);
        if table == TableKind::Paper || self.lifetime.is_some() {
            return vec![options];
        }
        let with = |rule: &str| TableOptions { lifetime: Some(rule.to_owned()), ..options.clone() };
        ["constant:127", "learned"].map(with).to_vec()
    }
}
