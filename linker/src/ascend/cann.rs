//! The CANN toolkit of this machine: its folder, its version, and what needs which version.

use std::env::{self, consts::ARCH};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A CANN version, such as `8.5.0` or `8.1.RC1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The text that CANN's files have.
    pub text: String,
    /// The first two numbers.
    pub number: (u32, u32),
}

impl Version {
    /// Returns the version that a text such as `9.1.0-beta.3` names; `None` if it does not begin
    /// with two numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('.');
        let number = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { text: text.trim().into(), number })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Something that AVSG does, and the first version of CANN whose public documentation or headers
/// have all calls of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// What AVSG does.
    pub what: &'static str,
    /// The calls that decide.
    pub calls: &'static str,
    /// The first two numbers of the version.
    pub since: (u32, u32),
}

/// What needs which version, in the order of the versions: of the runtime library on the machine that runs
/// the engine, or of the toolkit on the machine that builds.
pub const REQUIREMENTS: [Requirement; 5] = [
    Requirement {
        what: "run an engine",
        calls: "aclrtHostRegister, aclrtKernelArgsAppend, aclrtLaunchKernelWithConfig",
        since: (8, 1),
    },
    Requirement {
        what: "build kernels",
        calls: "LocalTensor from position, address and length, InitSocState, ascendc_fatbin_library",
        since: (8, 5),
    },
    Requirement {
        what: "build the operator project",
        calls: "npu_op_package and npu_op_kernel_library of find_package(ASC)",
        since: (8, 5),
    },
    Requirement {
        what: "load embedded kernels without a temporary file",
        calls: "aclrtBinaryLoadFromData",
        since: (8, 5),
    },
    Requirement {
        what: "respect a stream's limit of vector cores",
        calls: "aclrtGetStreamResLimit",
        since: (8, 5),
    },
];

/// Returns what a version is too old for.
pub fn too_old_for(version: &Version) -> impl Iterator<Item = &'static Requirement> {
    let number = version.number;
    REQUIREMENTS.iter().filter(move |requirement| number < requirement.since)
}

/// Returns CANN's folder, which `set_env.sh` puts into ASCEND_HOME_PATH.
pub fn home() -> Option<PathBuf> {
    env::var_os("ASCEND_HOME_PATH").filter(|home| !home.is_empty()).map(PathBuf::from)
}

/// Returns the files that state CANN's version, the documented one first.
fn version_files(home: &Path) -> [PathBuf; 3] {
    [
        home.join(format!("{ARCH}-linux/ascend_toolkit_install.info")),
        home.join("share/info/asc-devkit/version.info"),
        home.join("compiler/version.info"),
    ]
}

/// Reads the version of the CANN in `home`.
///
/// # Errors
/// The files that were tried, if none of them states a version.
pub fn version(home: &Path) -> Result<Version, String> {
    let files = version_files(home);
    let tried = || files.each_ref().map(|file| file.display().to_string()).join(", ");
    let version = files.iter().find_map(|file| stated(file));
    version.ok_or_else(|| format!("no file states CANN's version; tried {}", tried()))
}

/// Returns the version that a file of CANN, of the driver or of the firmware states; `None` if there is none.
pub fn stated(file: &Path) -> Option<Version> {
    let text = fs::read_to_string(file).ok()?;
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let mut named = pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case("version"));
    named.find_map(|(_, value)| Version::parse(value.trim_matches(['[', ']', '"'])))
}
