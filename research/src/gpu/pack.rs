//! The machine code that a program carries behind its own end, as a zip archive.

use std::fs::{self, File};
use std::io::{Cursor, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use avsg::Error;
use avsg_sim::nvcc;
use serde::{Deserialize, Serialize};
use zip::write::FileOptions;
use zip::{ZipArchive, ZipWriter};

use super::sizes::Sizes;
use super::texts::{ARCHITECTURES, Text, texts};

/// The name of the list of all machine code in the archive.
const LIST: &str = "kernels.json";

/// Machine code for one architecture.
#[derive(Clone, Debug)]
pub struct Image {
    /// The name of its text.
    pub name: String,
    /// The bytes of shared memory that its kernels of AVSG need.
    pub shared_bytes: u32,
    pub code: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    file: String,
    name: String,
    sm: u32,
    shared_bytes: u32,
}

/// Compiles a text to machine code by nvcc, in a folder that is kept.
///
/// # Errors
/// If nvcc is not found or refuses the text, or a kernel does not fit the registers.
pub fn compile(text: &Text, sm: u32, folder: &Path) -> Result<Vec<u8>> {
    let packages = folder.join("cuda-packages");
    let bin = nvcc::find(&packages, &[nvcc::PACKAGE]).map_err(|why| anyhow!(why))?;
    let file = folder.join(format!("{}-sm{sm}.cu", text.name));
    let code = file.with_extension("cubin");
    fs::write(&file, &text.text).with_context(|| file.display().to_string())?;
    // A text has constants that its kernels do not use.
    let flags = ["-diag-suppress=177"];
    let words = nvcc::compile(&bin, sm, &flags, &file, &code).map_err(|words| anyhow!(words))?;
    ensure!(!nvcc::spills(&words), "{}: kernels keep registers in memory: {words}", file.display());
    fs::read(&code).with_context(|| code.display().to_string())
}

/// Compiles all kernels, writes a copy of a program with their machine code to a file, and returns its bytes.
pub fn pack(
    program: &Path,
    out: &Path,
    compile: impl Fn(&Text, u32) -> Result<Vec<u8>>,
) -> Result<u64> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let mut entries = Vec::new();
    for architecture in ARCHITECTURES {
        let sm = architecture.sm;
        for text in texts(&Sizes::FULL, architecture, true)? {
            let file = format!("{}-sm{sm}.cubin", text.name);
            archive.start_file(&file, FileOptions::default())?;
            archive.write_all(&compile(&text, sm)?)?;
            let (name, shared_bytes) = (text.name, text.shared_bytes);
            entries.push(Entry { file, name, sm, shared_bytes });
        }
    }
    archive.start_file(LIST, FileOptions::default())?;
    archive.write_all(&serde_json::to_vec(&entries)?)?;
    let archive = archive.finish()?.into_inner();
    // The copy has the permissions of the program, also that to execute it.
    let bytes = fs::copy(program, out).with_context(|| out.display().to_string())?;
    let mut end = File::options().append(true).open(out)?;
    end.write_all(&archive).with_context(|| out.display().to_string())?;
    Ok(bytes + archive.len() as u64)
}

/// Reads the machine code for an architecture behind the end of a program.
///
/// # Errors
/// If the program carries none.
pub fn read(program: &Path, sm: u32) -> Result<Vec<Image>> {
    let file = File::open(program).with_context(|| program.display().to_string())?;
    let mut archive = ZipArchive::new(file).map_err(|_| Error::Unavailable {
        what: "machine code for GPUs",
        tried: format!("the end of {}", program.display()),
        remedy: "make a program that has it by avsg-research gpu pack FILE, and run that one",
    })?;
    let entries: Vec<Entry> = serde_json::from_reader(archive.by_name(LIST)?)?;
    let mut images = Vec::new();
    for Entry { file, name, shared_bytes, .. } in entries.into_iter().filter(|e| e.sm == sm) {
        let mut code = Vec::new();
        archive.by_name(&file)?.read_to_end(&mut code)?;
        images.push(Image { name, shared_bytes, code });
    }
    Ok(images)
}
