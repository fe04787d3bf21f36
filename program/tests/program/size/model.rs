//! Tests of the options of the model: suffixes of numbers, and the config.json of a model.

use std::fs;

use crate::support::{file, has, json, number, refused, text};

#[test]
fn numbers_have_suffixes_of_1024_and_memory_those_of_1000() {
    let shape = |numbers: &str| json(&format!("info {numbers}"))["geometry"].clone();
    assert_eq!(
        shape("--context 128K --slots 4K --row-bytes 1k"),
        shape("--context 131072 --slots 4096 --row-bytes 1024")
    );
    let limit =
        |gb: &str| number(&json(&format!("size LLAMA --device-gb {gb}"))["wish"]["device_bytes"]);
    for (gb, bytes) in
        [("4", 4e9), ("4G", 4e9), ("0.5GB", 5e8), ("4Gi", 4294967296.0), ("512M", 5.12e8)]
    {
        assert_eq!(limit(gb), bytes, "{gb}");
    }
    has(&text("info"), &["1 MB is 10^6 bytes"]);
}

#[test]
fn a_hugging_face_config_gives_layers_indexers_row_bytes_and_k() {
    let path = file("config.json");
    let with = |fields: &str| {
        let row = r#""kv_lora_rank": 512, "qk_rope_head_dim": 64"#;
        fs::write(&path, format!("{{{row}, \"num_hidden_layers\": 78, {fields}}}")).unwrap();
        format!("--config {}", path.display())
    };
    let types = |of: &dyn Fn(usize) -> bool, [own, shared]: [&str; 2]| {
        let kinds: Vec<_> = (0..78).map(|layer| if of(layer) { own } else { shared }).collect();
        format!(r#""indexer_types": {kinds:?}, "index_topk": 2048, "dtype": "bfloat16""#)
    };
    let every_fourth = |layer| layer < 3 || layer % 4 == 2;
    let freq = r#""index_topk_freq": 4, "index_skip_topk_offset": 3, "index_topk": 1024, "torch_dtype": "float32""#;
    for (fields, indexers, row_bytes, k) in [
        (types(&every_fourth, ["full", "shared"]), 21, 1152, 2048),
        (freq.to_owned(), 21, 2304, 1024),
        (r#""index_topk": 512, "dtype": "float16""#.to_owned(), 78, 1152, 512),
    ] {
        let found = &json(&format!("info {}", with(&fields)))["geometry"];
        for (name, value) in
            [("layers", 78), ("indexers", indexers), ("row_bytes", row_bytes), ("k", k)]
        {
            assert_eq!(found[name], value, "{name}: {fields}");
        }
    }
    let config = with(r#""index_topk": 64, "dtype": "bfloat16""#);
    let report = json(&format!("size LLAMA --slots 256 {config} --layers 4"));
    assert_eq!(
        (&report["deployment"]["layers"], &report["deployment"]["row_bytes"]),
        (&4.into(), &1152.into())
    );
    refused(&format!("size SAMPLE {config}"), &["K of the trace is 256", "K = 64"]);
    let no_type = with(r#""index_topk": 64"#);
    refused(&format!("info {no_type}"), &["torch_dtype is missing", "pass --row-bytes"]);
    assert_eq!(json(&format!("info {no_type} --row-bytes 656"))["geometry"]["row_bytes"], 656);
    let short = with(r#""indexer_types": ["full"], "index_topk": 64, "dtype": "bfloat16""#);
    refused(&format!("info {short}"), &["indexer_types is", "78 layers", "pass --indexers"]);
    let linear =
        with(r#""layer_types": ["linear_attention"], "index_topk": 64, "dtype": "bfloat16""#);
    refused(&format!("info {linear}"), &["layer_types", "pass --layers and --indexers"]);
}
