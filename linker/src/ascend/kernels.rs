//! The AscendC kernels of a geometry: hand-written files, which are the same for every geometry, around
//! the generated headers with its numbers and its Stage One.

use std::path::Path;
use std::{fs, io};

use avsg_device::kernels::KernelName;
use avsg_device::params::Params;

use super::geometry::{self, COPY_BYTES, GLOBAL_BYTES, RESET_BYTES};
use super::limits::{FRAME_BYTES, STAGE_ONE_BYTES};
use super::stage_one::StageOneText;
use crate::ascend::one_file::one_file;
use crate::ascend::ub::TooLarge;

pub use super::geometry::Abi;

/// Returns the name and the text of a hand-written file.
macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("kernels/", $name)).to_string())
    };
}

/// One kernel, ready to compile beside the headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The name of its entry point and of its file.
    pub name: &'static str,
    /// Its C++ text.
    pub text: String,
    /// Bytes of unified buffer that it may access, from address 0.
    pub ub_bytes: u32,
}

/// The kernels of a geometry, and their headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Name and text of each header. A header includes only headers before it.
    pub headers: Vec<(&'static str, String)>,
    /// The kernels, each a file that includes some of the headers.
    pub kernels: Vec<Kernel>,
}

impl Kernels {
    /// Returns all files, which belong in one folder, with their names.
    pub fn files(&self) -> impl Iterator<Item = (String, &str)> {
        let headers = self.headers.iter().map(|(name, text)| ((*name).into(), text.as_str()));
        headers.chain(self.kernels.iter().map(|k| (format!("{}.cpp", k.name), k.text.as_str())))
    }

    /// Writes all files into a folder, which is created if it does not exist.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        self.files().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    }

    /// Returns all kernels as one text for the shim, which is compiled in a third of the time that
    /// their files take. CANN would take one type for all kernels of such a file.
    pub fn together(&self) -> String {
        let kernels: String = self.kernels.iter().map(|kernel| kernel.text.as_str()).collect();
        format!("#define AVSG_SHIM_SEVERAL_FILES\n{}", self.whole(&kernels))
    }

    /// Returns the text of a kernel with its headers included, so that the file needs no other.
    pub fn whole(&self, text: &str) -> String {
        one_file(text, &self.headers)
    }
}

/// Writes the kernels of a geometry around its Stage One.
///
/// # Errors
/// If the kernels do not fit the unified buffer.
pub fn kernels(p: &Params, stage_one: &StageOneText, abi: Abi) -> Result<Kernels, TooLarge> {
    let frame = stage_one.ub_bytes.next_multiple_of(32);
    if frame > STAGE_ONE_BYTES {
        return Err(TooLarge { needs: frame, limit: STAGE_ONE_BYTES });
    }
    let plan = (frame + FRAME_BYTES).max(GLOBAL_BYTES).max(geometry::learn_bytes(p));
    let step = plan.max(geometry::step_bytes(p));
    let kernel = |name: KernelName, (_, text), ub_bytes| Kernel {
        name: name.entry().to_str().unwrap_or_default(),
        text,
        ub_bytes,
    };
    Ok(Kernels {
        headers: vec![
            ("avsg_geometry.h", geometry::geometry(p, frame, abi)),
            file!("avsg_kernel.h"),
            file!("avsg_instructions.h"),
            ("avsg_ops.h", geometry::ops(p, stage_one)),
            ("avsg_search.h", geometry::search(p, stage_one)),
            ("avsg_request.h", geometry::request(p)),
            ("avsg_stage_one.h", geometry::stage_one(p, stage_one)),
            file!("avsg_plan.h"),
            file!("avsg_rows.h"),
            file!("avsg_transfer.h"),
            file!("avsg_globalize.h"),
            file!("avsg_late.h"),
            file!("avsg_learn.h"),
        ],
        kernels: vec![
            kernel(KernelName::Plan, file!("avsg_plan.cpp"), plan),
            kernel(KernelName::Transfer, file!("avsg_transfer.cpp"), COPY_BYTES),
            kernel(KernelName::Step, file!("avsg_step.cpp"), step),
            kernel(KernelName::Append, file!("avsg_append.cpp"), COPY_BYTES),
            kernel(KernelName::Reset, file!("avsg_reset.cpp"), RESET_BYTES),
        ],
    })
}
