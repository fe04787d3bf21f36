//! Tests of the forms in which engines dump their selections: other integers, further axes,
//! safetensors, repeated ids.

use std::fs;
use std::path::PathBuf;

use avsg_cli::trace::{MAX_ID, Part, Trace};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use zip::ZipWriter;

use crate::support::{file, npy};
use crate::trace_files::{npz, read_damaged, unreadable as refused};

fn tensors(name: &str, arrays: &[(&str, Dtype, &[usize], Vec<u8>)]) -> PathBuf {
    let view =
        |dtype, shape: &[usize], bytes| TensorView::new(dtype, shape.to_vec(), bytes).unwrap();
    let views: Vec<_> = arrays.iter().map(|(n, d, s, b)| (*n, view(*d, s, b))).collect();
    let path = file(name);
    fs::write(&path, safetensors::serialize(views, None).unwrap()).unwrap();
    path
}

fn part(layer: Option<usize>, request: Option<usize>) -> Part {
    Part { layer, request }
}

/// The largest number is what -1 becomes when it is converted to an unsigned type.
#[test]
fn ids_are_signed_or_unsigned_integers_of_32_or_64_bits() {
    let expected = Trace::new(vec![5, -1, MAX_ID, 0], None, [2, 1, 2]).unwrap();
    let (shape, most) = ([2, 2], MAX_ID as u32);
    for path in [
        npy("i64.npy", &shape, &[5i64, -1, MAX_ID.into(), 0]),
        npy("low.npy", &shape, &[5i64, i64::MIN, MAX_ID.into(), 0]),
        npy("u32.npy", &shape, &[5u32, u32::MAX, most, 0]),
        npy("u64.npy", &shape, &[5u64, u64::MAX, most.into(), 0]),
    ] {
        assert_eq!(Trace::read(path).unwrap(), expected);
    }
    for (path, parts) in [
        (
            npy("far-i64.npy", &shape, &[1i64, 2, 3, 5_000_000_000]),
            &["5000000000 at step 1", "16777215"],
        ),
        (
            npy("far-u32.npy", &[1, 2], &[1u32, u32::MAX - 1]),
            &["4294967294 at step 0", "position 1"],
        ),
        (
            npy("far-u64.npy", &[1, 2], &[1u64, u64::MAX - 1]),
            &["18446744073709551614 at step 0", "id is"],
        ),
        (npy("i16.npy", &[1, 3], &[1i16, 2, 3]), &["'<i2'", "'<i4' or '<u4' or '<i8' or '<u8'"]),
        (npy("u8.npy", &[1, 3], &[1u8, 2, 3]), &["'|u1'", "'<i4'"]),
    ] {
        refused(Trace::read(path), parts);
    }
}

#[test]
fn one_layer_and_one_request_are_taken() {
    // The id of (step, layer, request, token, position) has these numbers as its digits.
    let mut ids: Vec<i64> = Vec::new();
    for at in 0..2 * 3 * 2 * 2 * 4 {
        let (k, token, request) = (at % 4, at / 4 % 2, at / 8 % 2);
        let (layer, step) = (at / 16 % 3, at / 48);
        ids.push(step * 10000 + layer * 1000 + request * 100 + token * 10 + k);
    }
    let with = |steps_tokens: [i32; 2], base: i32| {
        let [steps, tokens] = steps_tokens;
        let row = |s: i32, t: i32| (0..4).map(move |k| s * 10000 + base + t * 10 + k);
        let ids = (0..steps).flat_map(|s| (0..tokens).flat_map(move |t| row(s, t)));
        Trace::new(ids.collect(), None, [steps as usize, tokens as usize, 4]).unwrap()
    };
    let path = npy("axes.npy", &[2, 3, 2, 2, 4], &ids);
    let read = |layer, request| Trace::read_part(&path, part(layer, request));
    assert_eq!(read(Some(2), Some(1)).unwrap(), with([2, 2], 2100));
    assert_eq!(read(Some(0), Some(0)).unwrap(), with([2, 2], 0));
    refused(read(Some(3), Some(0)), &["--layer", "3", "3 layers"]);
    refused(read(Some(0), Some(2)), &["--request", "2 requests"]);
    refused(read(None, None), &["[2, 3, 2, 2, 4]", "[steps, N_q, K] or [steps, K]", "--layer"]);
    refused(read(Some(0), None), &["[steps, layers, N_q, K] or [steps, layers, K]"]);

    let layers: Vec<i64> = ids.iter().copied().filter(|id| id / 100 % 10 == 0).collect();
    let path = npy("axes-4.npy", &[2, 3, 2, 4], &layers);
    let read = |layer, request| Trace::read_part(&path, part(layer, request));
    assert_eq!(read(Some(1), None).unwrap(), with([2, 2], 1000));
    // The same numbers read as [steps, layers, requests, K].
    let one = read(Some(1), Some(1)).unwrap();
    assert_eq!((one.tokens, &one.ids[..4]), (1, &[1010, 1011, 1012, 1013][..]));
    refused(read(None, None), &["[2, 3, 2, 4]"]);
    refused(read(None, Some(3)), &["--request", "3 requests"]);
}

#[test]
fn stable_may_have_an_axis_of_requests() {
    let path = npz("stable-requests.npz", |out| {
        out.array("ids", &[2, 2, 1], &[1i64, 2, 3, 4])?;
        out.array("stable", &[2, 2], &[7i64, 8, 9, -1])
    });
    let second = Trace::read_part(&path, part(None, Some(1))).unwrap();
    assert_eq!((second.ids, second.stable), (vec![2, 4], Some(vec![8, -1])));
    refused(Trace::read(&path), &["[2, 2] (array stable)", "[steps]"]);
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
    refused(Trace::read(tensors("other.safetensors", &[other])), &["no array 'ids'", "topk"]);
    let half = ("ids", Dtype::F16, &[1usize, 2][..], vec![0; 4]);
    refused(Trace::read(tensors("half.safetensors", &[half])), &["F16", "'<i4'"]);
}

/// The entries of an archive that `torch.save` writes are no arrays.
#[test]
fn a_file_of_torch_save_is_refused_with_what_to_do() {
    let path = file("dump.pt");
    let mut out = ZipWriter::new(fs::File::create(&path).unwrap());
    out.start_file("dump/data.pkl", Default::default()).unwrap();
    out.finish().unwrap();
    refused(Trace::read(&path), &["dump.pt", "no array 'ids'", "numpy.save", "torch.save"]);
}
