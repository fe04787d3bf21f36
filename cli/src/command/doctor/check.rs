//! The checks of `avsg doctor`, in the order in which they run. Each one runs in a process of its
//! own.

use clap::ValueEnum;

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The device's name, cores and memory
    Device,
    /// The read of a GatherMask's count, with and without a wait
    GatherCount,
    /// The kernel avsg_reset, alone
    Reset,
    /// The kernel avsg_plan, alone
    Plan,
    /// The kernel avsg_transfer, after avsg_plan
    Transfer,
    /// The kernel avsg_append, alone
    Append,
    /// The kernel avsg_step, which runs both stages
    Step,
    /// The result of an int32 overflow
    Overflow,
    /// The rate of Gather
    Gather,
    /// The cost of SyncAll
    SyncAll,
    /// The cost of a launch
    Launch,
    /// Bandwidth by rows in flight
    RowsInFlight,
    /// The registration of hugepages
    Hugetlb,
    /// The largest registration
    LargestRegistration,
    /// A host row that is rewritten between two kernels
    RewrittenRow,
    /// The time of Stage One
    MatchLatency,
    /// The bandwidth of Stage Two
    Bandwidth,
    /// The code of a kernel fault
    FaultCode,
}

impl Check {
    /// The checks of the five kernels.
    pub const KERNELS: [Self; 5] =
        [Self::Reset, Self::Plan, Self::Transfer, Self::Append, Self::Step];

    /// The properties that are measured one by one, by their names in the report.
    pub const PROPERTIES: [(&str, Self); 9] = [
        ("int32_overflow", Self::Overflow),
        ("gather_rate", Self::Gather),
        ("sync_all_cost", Self::SyncAll),
        ("launch_cost", Self::Launch),
        ("mte2_rows_in_flight", Self::RowsInFlight),
        ("hugetlb_registration", Self::Hugetlb),
        ("largest_registration", Self::LargestRegistration),
        ("rewritten_row_seen", Self::RewrittenRow),
        ("match_latency", Self::MatchLatency),
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().into())
    }

    /// Returns the kernels that must be right before this check means anything.
    pub fn needs(self) -> &'static [Self] {
        match self {
            Self::Plan | Self::Append => &[Self::Reset],
            Self::Transfer => &[Self::Reset, Self::Plan],
            Self::Step => &[Self::Reset, Self::Plan, Self::Transfer],
            Self::RewrittenRow => &[Self::Step],
            Self::MatchLatency | Self::FaultCode => &[Self::Plan],
            Self::Bandwidth => &[Self::Transfer],
            _ => &[],
        }
    }
}
