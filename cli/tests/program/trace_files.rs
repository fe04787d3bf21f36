//! Tests of files: traces are read as they were written, damaged files are refused with one line, and
//! results and charts have their documented form.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use avsg_cli::npz::Writer;
use avsg_cli::trace::{MAX_ID, Trace};

use crate::support::{SAMPLE, file, npy};

/// Writes an archive of arrays and returns its path.
pub fn npz(name: &str, write: impl Fn(&mut Writer) -> avsg::Result<()>) -> PathBuf {
    let mut out = Writer::default();
    write(&mut out).and_then(|()| out.finish(&file(name))).unwrap();
    file(name)
}

/// Checks that a trace is refused with one line that contains all of `parts`.
pub fn unreadable(result: avsg::Result<Trace>, parts: &[&str]) {
    let text = result.unwrap_err().to_string();
    assert!(!text.contains('\n'), "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

fn refused(path: impl AsRef<Path>, parts: &[&str]) {
    unreadable(Trace::read(path), parts);
}

/// Cuts a file at every byte, which is refused with all of `parts`, and changes every byte in turn. A byte of a number
/// may be read without an error, but not panic.
pub fn read_damaged(path: impl AsRef<Path>, name: &str, parts: &[&str]) {
    let bytes = fs::read(path).unwrap();
    for at in 0..bytes.len() {
        fs::write(file(name), &bytes[..at]).unwrap();
        refused(file(name), parts);
        let mut wrong = bytes.clone();
        wrong[at] ^= 0x55;
        fs::write(file(name), wrong).unwrap();
        let _ = Trace::read(file(name));
    }
}

fn small() -> Trace {
    let ids = vec![5, -1, 9, 4, 5, 6, 1, 2, 3, 7, 8, MAX_ID];
    Trace::new(ids, Some(vec![10, -1]), [2, 2, 3]).unwrap()
}

#[test]
fn a_trace_is_read_as_it_was_written() {
    let path = file("round.npz");
    small().write(&path).unwrap();
    assert_eq!(Trace::read(&path).unwrap(), small());
    let plain = Trace { stable: None, ..small() };
    plain.write(&path).unwrap();
    assert_eq!(Trace::read(&path).unwrap(), plain);
    assert_eq!(Trace::read(npy("3d.npy", &[2, 2, 3], &plain.ids)).unwrap(), plain);
    let flat = Trace::read(npy("2d.npy", &[4, 3], &plain.ids)).unwrap();
    assert_eq!((flat.steps, flat.tokens, flat.k, &flat.ids), (4, 1, 3, &plain.ids));
    assert_eq!(small().as_mtp0(), Trace { stable: Some(vec![10, 11, -1, -1]), ..flat });
}

#[test]
fn the_compressed_form_is_read() {
    let with = |shape: [usize; 3], [low, high]: [&[u8]; 2], lengths: &[i32]| {
        npz("gaps.npz", |out| {
            out.array("gap_lo", &shape, low)?;
            out.array("gap_hi", &shape, high)?;
            out.array("context_len", &[lengths.len()], lengths)
        })
    };
    let gaps = [&[3, 1, 0, 255, 1, 2][..], &[0, 0, 1, 255, 0, 0]];
    let trace = Trace::read(with([2, 1, 3], gaps, &[300, 70000])).unwrap();
    assert_eq!(trace.ids, [3, 4, 260, 65535, 65536, 65538]);
    assert_eq!(trace.stable, Some(vec![300, 70000]));
    let far = with([1, 1, 300], [&[255; 300], &[255; 300]], &[1]);
    refused(&far, &["16777216 at step 0, row 0, position 256", "16777215"]);
}

#[test]
fn bad_files_are_refused() {
    refused(file("nowhere.npz"), &["open", "nowhere.npz", "check that the path"]);
    refused(Path::new(env!("CARGO_TARGET_TMPDIR")), &["check that the path"]);
    fs::write(file("text.npy"), "hello").unwrap();
    refused(file("text.npy"), &["text.npy", "5 bytes", "numpy.save"]);
    fs::write(file("empty.npz"), "").unwrap();
    refused(file("empty.npz"), &["empty.npz", "0 bytes"]);

    refused(npy("f32.npy", &[1, 3], &[1f32, 2.0, 3.0]), &["dtype", "'<f4'", "astype"]);
    refused(npy("1d.npy", &[3], &[1, 2, 3]), &["[3]", "[steps, N_q, K]"]);
    refused(npy("4d.npy", &[1, 1, 1, 2], &[1, 2]), &["[1, 1, 1, 2]", "reshape"]);
    refused(npy("none.npy", &[0, 2, 2], &[0i32; 0]), &["[0, 2, 2]", "at least 1"]);
    refused(npy("no-k.npy", &[2, 0], &[0i32; 0]), &["[2, 1, 0]", "at least 1"]);
    let far = npy("far.npy", &[2, 1, 2], &[1, 2, 3, MAX_ID + 1]);
    refused(&far, &["16777216 at step 1, row 0, position 1", "16777215", "renumber"]);
}

#[test]
fn bad_stable_is_refused() {
    let shaped = |shape: &[usize], stable: &[i32]| {
        npz("stable.npz", |out| {
            out.array("ids", &[2, 1, 1], &[1, 2])?;
            out.array("stable", shape, stable)
        })
    };
    let with = |stable: &[i32]| shaped(&[stable.len()], stable);
    assert_eq!(Trace::read(with(&[-1, 5])).unwrap().stable, Some(vec![-1, 5]));
    refused(with(&[1]), &["stable", "1 values", "2 steps"]);
    refused(with(&[0, -2]), &["stable is -2 at step 1", "-1"]);
    refused(with(&[MAX_ID + 1, 0]), &["stable is 16777216 at step 0"]);
    refused(shaped(&[2, 1], &[1, 2]), &["[2, 1] (array stable)", "[steps]"]);
    let other = npz("other.npz", |out| out.array("rows", &[1, 1], &[1]));
    refused(&other, &["no array 'ids'", "rows"]);
}

#[test]
fn cut_files_are_refused() {
    let whole = file("whole.npz");
    small().write(&whole).unwrap();
    read_damaged(whole, "damaged.npz", &[]);
    read_damaged(npy("whole.npy", &[2, 2, 3], &small().ids), "damaged.npy", &[]);
    let path = npy("data.npy", &[2, 3], &[1, 2, 3, 4, 5, 6]);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 4]).unwrap();
    refused(&path, &["20 bytes", "needs 24", "cut short"]);
}

#[test]
fn hostile_headers_are_refused() {
    let with = |header: &str| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend([0; 64]);
        fs::write(file("header.npy"), bytes).unwrap();
        file("header.npy")
    };
    let shape =
        |shape: &str| format!("{{'descr': '<i4', 'fortran_order': False, 'shape': ({shape}), }}\n");
    assert!(Trace::read(with(&shape("2, 2, 2"))).is_ok());
    refused(with(&shape("4294967296, 4294967296, 2")), &["header", "4294967296"]);
    refused(with(&shape("99999999999999999999999, 1")), &["99999999999999999999999"]);
    refused(with(&shape("65536, 32767")), &["needs 8589672448 bytes"]);
    refused(with(&"(".repeat(60000)), &["60000 bytes"]);
    refused(with("nonsense shape"), &["header"]);
    refused(with("no such thing\n"), &["no shape"]);
    refused(with(&format!("{}shape", "(".repeat(1000))), &["header"]);
    refused(with(&shape("2, 2,\n99999999999")), &["99999999999"]);
    refused(with(&shape("2, 2, 2").replace("<i4", "<i4\n")), &["header"]);
    refused(with(&shape("2, 2, 2").replace("<i4", "<i4\\n")), &["header"]);
    refused(with(&shape("2, 2, 2").replace("<i4", "|O")), &["dtype", "O"]);
    let turned = shape("2, 2, 2").replace("False", "True");
    refused(with(&turned), &["Fortran", "ascontiguousarray"]);
}

#[test]
fn rows_can_be_shuffled_and_cut_to_fewer_ids() {
    let trace = Trace::read(SAMPLE).unwrap();
    let shuffled = trace.shuffled(3);
    assert_eq!(shuffled, trace.shuffled(3));
    assert_ne!(shuffled, trace.shuffled(4));
    let sorted = |row: &[i32]| row.iter().copied().collect::<BTreeSet<i32>>();
    for step in 0..trace.steps {
        assert_eq!(sorted(trace.row(step, 1)), sorted(shuffled.row(step, 1)));
        assert_ne!(trace.row(step, 1), shuffled.row(step, 1));
    }
    let thin = trace.take_k(64).unwrap();
    assert_eq!((thin.steps, thin.tokens, thin.k), (64, 4, 64));
    let other = shuffled.take_k(64).unwrap();
    // The choice depends on the id alone, so it is the same for rows in another order.
    for row in 0..256 {
        let (step, token) = (row / 4, row % 4);
        assert!(thin.row(step, token).is_sorted());
        assert_eq!(sorted(thin.row(step, token)), sorted(other.row(step, token)));
    }
    let padded = Trace::new(vec![-1, 7, -1, 3], None, [1, 1, 4]).unwrap();
    assert_eq!(padded.take_k(2).unwrap().ids, [7, 3]);
    assert_eq!(padded.take_k(3).unwrap().ids, [-1, 7, 3]);
    assert!(trace.take_k(257).unwrap_err().to_string().contains("256"));
    assert!(trace.take_k(0).is_err() && trace.truncated(0).is_err());
    assert_eq!(trace.truncated(9).unwrap().stable.unwrap().len(), 9);
    assert_eq!(trace.truncated(1000).unwrap(), trace);
}
