//! Tests of files: traces are read as they were written and in the forms in which engines dump their selections (other
//! integers, further axes, safetensors, repeated ids), and damaged files are refused with one line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use avsg_cli::npz::{array, write};
use avsg_cli::trace::{MAX_ID, Pick, Trace};
use avsg_testkit::tier;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use zip::ZipWriter;

use crate::support::{SAMPLE, file, has, npy};

/// Writes an archive of arrays and returns its path.
fn npz(name: &str, arrays: &[(&str, Vec<u8>)]) -> PathBuf {
    write(&file(name), arrays).unwrap();
    file(name)
}

/// Reads one layer, one request or both of a file.
fn part(
    path: impl AsRef<Path>,
    layer: Option<usize>,
    request: Option<usize>,
) -> avsg::Result<Trace> {
    let parts = Trace::read_parts(path, layer.map(Pick::One), request.map(Pick::One))?;
    Ok(parts.into_iter().next().expect("a part").1)
}

/// Checks that a trace is refused with one line that contains all of `parts`.
fn unreadable(result: avsg::Result<Trace>, parts: &[&str]) {
    let text = result.unwrap_err().to_string();
    assert!(!text.contains('\n'), "{text}");
    has(&text, parts);
}

fn refused(path: impl AsRef<Path>, parts: &[&str]) {
    unreadable(Trace::read(path), parts);
}

/// Cuts a file at every byte, or every fifth one, which is refused with all of `parts`, and changes such bytes in turn. A byte
/// of a number may be read without an error, but not panic.
fn read_damaged(path: impl AsRef<Path>, name: &str, parts: &[&str]) {
    let bytes = fs::read(path).unwrap();
    for at in (0..bytes.len()).step_by(if tier::thorough() { 1 } else { 5 }) {
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
    assert_eq!(small().as_mtp0().unwrap(), Trace { stable: Some(vec![10, 11, -1, -1]), ..flat });
}

#[test]
fn the_compressed_form_is_read() {
    let with = |shape: [usize; 3], [low, high]: [&[u8]; 2], lengths: &[i32]| {
        let [low, high] = [low, high].map(|plane| array(&shape, plane));
        let lengths = array(&[lengths.len()], lengths);
        npz("gaps.npz", &[("gap_lo", low), ("gap_hi", high), ("context_len", lengths)])
    };
    let gaps = [&[3, 1, 0, 255, 1, 2][..], &[0, 0, 1, 255, 0, 0]];
    let trace = Trace::read(with([2, 1, 3], gaps, &[300, 70000])).unwrap();
    assert_eq!(trace.ids, [3, 4, 260, 65535, 65536, 65538]);
    assert_eq!(trace.stable, Some(vec![300, 70000]));
    let far = with([1, 1, 300], [&[255; 300], &[255; 300]], &[-1]);
    refused(&far, &["16777216 at step 0, row 0, position 256", "16777215"]);
}

#[test]
fn bad_files_are_refused() {
    refused(file("nowhere.npz"), &["open", "nowhere.npz", "check that the path"]);
    refused(Path::new(env!("CARGO_TARGET_TMPDIR")), &["check that the path"]);
    for (name, content, bytes) in [("text.npy", "hello", "5 bytes"), ("empty.npz", "", "0 bytes")] {
        fs::write(file(name), content).unwrap();
        refused(file(name), &[name, bytes, "numpy.save"]);
    }

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
        let ids = array(&[2, 1, 1], &[1, 2]);
        npz("stable.npz", &[("ids", ids), ("stable", array(shape, stable))])
    };
    let with = |stable: &[i32]| shaped(&[stable.len()], stable);
    assert_eq!(Trace::read(with(&[-1, 5])).unwrap().stable, Some(vec![-1, 5]));
    refused(with(&[1]), &["stable", "1 values", "2 steps"]);
    refused(with(&[0, -2]), &["stable is -2 at step 1", "-1"]);
    refused(with(&[MAX_ID + 1, 0]), &["stable is 16777216 at step 0"]);
    refused(shaped(&[2, 1], &[1, 2]), &["[2, 1] (array stable)", "[steps]"]);
    let other = npz("other.npz", &[("rows", array(&[1, 1], &[1]))]);
    refused(&other, &["no array 'ids'", "rows"]);
    // It may have an axis of requests.
    let (ids, stable) = (array(&[2, 2, 1], &[1i64, 2, 3, 4]), array(&[2, 2], &[7i64, 8, 9, -1]));
    let path = npz("stable-requests.npz", &[("ids", ids), ("stable", stable)]);
    let second = part(&path, None, Some(1)).unwrap();
    assert_eq!((second.ids, second.stable), (vec![2, 4], Some(vec![8, -1])));
    refused(&path, &["[2, 2] (array stable)", "[steps]"]);
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
    let cube = |old: &str, new: &str| shape("2, 2, 2").replace(old, new);
    for (header, parts) in [
        (shape("4294967296, 4294967296, 2"), &["header", "4294967296"][..]),
        (shape("99999999999999999999999, 1"), &["99999999999999999999999"]),
        (shape("65536, 32767"), &["needs 8589672448 bytes"]),
        ("(".repeat(60000), &["60000 bytes"]),
        ("nonsense shape".to_owned(), &["header"]),
        ("no such thing\n".to_owned(), &["no shape"]),
        (format!("{}shape", "(".repeat(1000)), &["header"]),
        (shape("2, 2,\n99999999999"), &["99999999999"]),
        (cube("<i4", "<i4\n"), &["header"]),
        (cube("<i4", "<i4\\n"), &["header"]),
        (cube("<i4", "|O"), &["dtype", "O"]),
        (cube("False", "True"), &["Fortran", "ascontiguousarray"]),
    ] {
        refused(with(&header), parts);
    }
}

#[test]
fn rows_can_be_shuffled_and_cut_to_fewer_ids() {
    let trace = Trace::read(SAMPLE).unwrap();
    let shuffled = trace.shuffled(3);
    assert_eq!(shuffled, trace.shuffled(3));
    assert_ne!(shuffled, trace.shuffled(4));
    let sorted = |row: &[i32]| row.iter().copied().collect::<BTreeSet<i32>>();
    let (thin, other) = (trace.take_k(64).unwrap(), shuffled.take_k(64).unwrap());
    assert_eq!((thin.steps, thin.tokens, thin.k), (64, 4, 64));
    for (step, token) in (0..256).map(|row| (row / 4, row % 4)) {
        let row = |trace: &Trace| trace.row(step, token).to_vec();
        assert_ne!(row(&trace), row(&shuffled));
        assert_eq!(sorted(&row(&trace)), sorted(&row(&shuffled)));
        // The choice depends on the id alone, so it is the same for rows in another order.
        assert_eq!(sorted(&row(&thin)), sorted(&row(&other)));
        assert!(row(&thin).is_sorted());
    }
    let padded = Trace::new(vec![-1, 7, -1, 3], None, [1, 1, 4]).unwrap();
    assert_eq!(padded.take_k(2).unwrap().ids, [7, 3]);
    assert_eq!(padded.take_k(3).unwrap().ids, [-1, 7, 3]);
    unreadable(trace.take_k(257), &["256"]);
    assert!(trace.take_k(0).is_err() && trace.truncated(0).is_err());
    assert_eq!(trace.truncated(9).unwrap().stable.unwrap().len(), 9);
    assert_eq!(trace.truncated(1000).unwrap(), trace);
}

fn tensors(name: &str, arrays: &[(&str, Dtype, &[usize], Vec<u8>)]) -> PathBuf {
    let view =
        |dtype, shape: &[usize], bytes| TensorView::new(dtype, shape.to_vec(), bytes).unwrap();
    let views: Vec<_> = arrays.iter().map(|(n, d, s, b)| (*n, view(*d, s, b))).collect();
    let path = file(name);
    fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    path
}

/// The largest number is what -1 becomes when it is converted to an unsigned type.
#[test]
fn ids_are_signed_or_unsigned_integers_of_32_or_64_bits() {
    let expected = Trace::new(vec![5, -1, MAX_ID, 0], None, [2, 1, 2]).unwrap();
    let (shape, most) = ([2, 2], MAX_ID as u32);
    for path in [
        npy("i64.npy", &shape, &[5i64, -1, MAX_ID.into(), 0]),
        npy("u32.npy", &shape, &[5u32, u32::MAX, most, 0]),
        npy("u64.npy", &shape, &[5u64, u64::MAX, most.into(), 0]),
    ] {
        assert_eq!(Trace::read(path).unwrap(), expected);
    }
    let low = Trace::read(npy("low.npy", &shape, &[5i64, i64::MIN, MAX_ID.into(), 0])).unwrap();
    assert_eq!((low.ids[0], low.ids[1] < 0), (5, true));
    let far = npy("far-i64.npy", &shape, &[1i64, 2, 3, 5_000_000_000]);
    refused(far, &["5000000000 at step 1, position 1", "2147483647"]);
    let far = npy("far-u32.npy", &[1, 2], &[1u32, u32::MAX - 1]);
    refused(far, &["4294967294 at step 0", "position 1"]);
    let far = npy("far-u64.npy", &[1, 2], &[1u64, u64::MAX - 1]);
    refused(far, &["18446744073709551614 at step 0", "value is"]);
    let integers = "'<i4' or '<u4' or '<i8' or '<u8'";
    refused(npy("i16.npy", &[1, 3], &[1i16, 2, 3]), &["'<i2'", integers]);
    refused(npy("u8.npy", &[1, 3], &[1u8, 2, 3]), &["'|u1'", "'<i4'"]);
}

#[test]
fn one_layer_and_one_request_are_taken() {
    // The id of (step, layer, request, token, position) has these numbers as its digits.
    let id = |at: i64| {
        at / 48 * 10000 + at / 16 % 3 * 1000 + at / 8 % 2 * 100 + at / 4 % 2 * 10 + at % 4
    };
    let ids: Vec<i64> = (0..2 * 3 * 2 * 2 * 4).map(id).collect();
    // Two steps of two tokens with these layers and requests.
    let with = |base: i64| {
        let chosen = ids.iter().filter(|&id| id / 100 % 100 == base / 100);
        Trace::new(chosen.map(|&id| id as i32).collect(), None, [2, 2, 4]).unwrap()
    };
    let path = npy("axes.npy", &[2, 3, 2, 2, 4], &ids);
    let read = |layer, request| part(&path, layer, request);
    assert_eq!(read(Some(2), Some(1)).unwrap(), with(2100));
    assert_eq!(read(Some(0), Some(0)).unwrap(), with(0));
    unreadable(read(Some(3), Some(0)), &["--layer", "3", "3 layers"]);
    unreadable(read(Some(0), Some(2)), &["--request", "2 requests"]);
    unreadable(read(None, None), &["[2, 3, 2, 2, 4]", "[steps, N_q, K] or [steps, K]", "--layer"]);
    unreadable(read(Some(0), None), &["[steps, layers, N_q, K] or [steps, layers, K]"]);

    let layers: Vec<i64> = ids.iter().copied().filter(|id| id / 100 % 10 == 0).collect();
    let path = npy("axes-4.npy", &[2, 3, 2, 4], &layers);
    let read = |layer, request| part(&path, layer, request);
    assert_eq!(read(Some(1), None).unwrap(), with(1000));
    // The same numbers read as [steps, layers, requests, K].
    let one = read(Some(1), Some(1)).unwrap();
    assert_eq!((one.tokens, &one.ids[..4]), (1, &[1010, 1011, 1012, 1013][..]));
    unreadable(read(None, None), &["[2, 3, 2, 4]"]);
    unreadable(read(None, Some(3)), &["--request", "3 requests"]);
}

#[test]
fn safetensors_files_are_read() {
    let words = |values: &[i64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let ids = ("ids", Dtype::I64, &[2usize, 1, 2][..], words(&[3, 4, -1, 5]));
    let stable = ("stable", Dtype::I64, &[2usize][..], words(&[10, 11]));
    let path = tensors("plain.safetensors", &[ids.clone(), stable]);
    let expected = Trace::new(vec![3, 4, -1, 5], Some(vec![10, 11]), [2, 1, 2]).unwrap();
    assert_eq!(Trace::read(&path).unwrap(), expected);

    read_damaged(&path, "damaged.safetensors", &["damaged.safetensors"]);
    let other = ("topk", Dtype::I64, &[1usize, 1][..], words(&[3]));
    unreadable(Trace::read(tensors("other.safetensors", &[other])), &["no array 'ids'", "topk"]);
    let half = ("ids", Dtype::F16, &[1usize, 2][..], vec![0; 4]);
    unreadable(Trace::read(tensors("half.safetensors", &[half])), &["F16", "'<i4'"]);
}

/// The entries of an archive that `torch.save` writes are no arrays.
#[test]
fn a_file_of_torch_save_is_refused_with_what_to_do() {
    let path = file("dump.pt");
    let mut out = ZipWriter::new(fs::File::create(&path).unwrap());
    out.start_file("dump/data.pkl", Default::default()).unwrap();
    out.finish().unwrap();
    refused(&path, &["dump.pt", "no array 'ids'", "numpy.save", "torch.save"]);
}
