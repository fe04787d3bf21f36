//! The checks of `avsg doctor`, in the order in which they run. Each one runs in a process of its
//! own.

use clap::ValueEnum;

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The device's name, cores and memory
    Device,
    /// The read of a GatherMask's count, with and without a wait
    GatherCount,
    /// Unaligned stores of neighbouring cores in one block of 32 bytes
    NeighbouringStores,
    /// Two SyncAlls in one kernel
    SyncAllTwice,
    /// Two SyncAlls in one kernel of a captured graph
    SyncAllCaptured,
    /// Select and Compares after GatherMask
    SelectAfterGatherMask,
    /// Gather of 16-bit elements
    #[value(name = "gather-16-bit")]
    Gather16Bit,
    /// Cast of int8 to half
    #[value(name = "cast-int8")]
    CastInt8,
    /// Cast of int16 to half
    #[value(name = "cast-int16")]
    CastInt16,
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
    /// Bandwidth by rows in flight
    RowsInFlight,
    /// The registration of hugepages
    Hugetlb,
    /// The largest registration
    LargestRegistration,
    /// A host row that is rewritten between two kernels
    RewrittenRow,
    /// Times of vector instructions, barriers, flags and scalar accesses
    PipeTimes,
    /// Times of copies from and to device memory
    CopyTimes,
    /// Times of copies of host rows
    HostTimes,
    /// The time of SyncAll
    SyncAllTime,
    /// The times of a launch on one core and on all cores
    LaunchTimes,
    /// Times of a device function that is not inlined, and of code that the instruction cache does not hold
    CodeTimes,
    /// The times of avsg_plan
    PlanTimes,
    /// The time of avsg_transfer
    TransferTimes,
    /// The times of avsg_step
    StepTimes,
    /// The time of avsg_append
    AppendTimes,
    /// The code of a kernel fault
    FaultCode,
}

/// A property that has a check of its own.
pub struct Property {
    /// The name in the report.
    pub name: &'static str,
    pub check: Check,
    /// The value that kernels and host are written for; empty if the value decides only figures.
    pub expected: &'static str,
    pub unit: &'static str,
}

const fn property(name: &'static str, check: Check, expected: &'static str) -> Property {
    Property { name, check, expected, unit: "" }
}

/// The properties that are examined one by one. The last one makes a kernel fault.
pub const PROPERTIES: [Property; 14] = [
    property("gather_mask_count", Check::GatherCount, "right after a wait only"),
    property("neighbouring_stores", Check::NeighbouringStores, "as expected"),
    property("sync_all_twice", Check::SyncAllTwice, "as expected"),
    property("sync_all_captured", Check::SyncAllCaptured, "as expected"),
    property("select_after_gather_mask", Check::SelectAfterGatherMask, "as expected"),
    property("gather_16_bit", Check::Gather16Bit, "as expected"),
    property("cast_int8_to_half", Check::CastInt8, "as expected"),
    property("cast_int16_to_half", Check::CastInt16, "as expected"),
    property("int32_overflow", Check::Overflow, ""),
    Property { unit: "[rows, GB/s]", ..property("mte2_rows_in_flight", Check::RowsInFlight, "") },
    property("hugetlb_registration", Check::Hugetlb, "true"),
    Property { unit: "bytes", ..property("largest_registration", Check::LargestRegistration, "") },
    property("rewritten_row_seen", Check::RewrittenRow, "true"),
    Property { unit: "ACL code", ..property("kernel_fault_code", Check::FaultCode, "507035") },
];

impl Check {
    /// The checks of the five kernels.
    pub const KERNELS: [Self; 5] =
        [Self::Reset, Self::Plan, Self::Transfer, Self::Append, Self::Step];

    /// The checks that measure times.
    pub const TIMES: [Self; 10] = [
        Self::PipeTimes,
        Self::CopyTimes,
        Self::HostTimes,
        Self::SyncAllTime,
        Self::LaunchTimes,
        Self::CodeTimes,
        Self::PlanTimes,
        Self::TransferTimes,
        Self::StepTimes,
        Self::AppendTimes,
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
            Self::RewrittenRow | Self::StepTimes => &[Self::Step],
            Self::PlanTimes | Self::FaultCode => &[Self::Plan],
            Self::TransferTimes => &[Self::Transfer],
            Self::AppendTimes => &[Self::Append],
            _ => &[],
        }
    }
}
