//! What CANN's operator compiler puts before the kernels of an operator package: the class of the
//! tiling data, and the macro that reads it. Tests of the program include this file by its path.

/// Returns that text for tiling data which `declared` declares with CANN's macros. With `known`, its
/// words, all shapes are known: the macro declares constants, and launches pass no tiling data.
pub fn tiling_header(declared: &str, known: Option<&[i32]>) -> String {
    let fields: Vec<(String, Option<usize>)> = declared.lines().filter_map(field).collect();
    let members = fields.iter().map(|(name, length)| match length {
        None => format!("    int32_t {name};\n"),
        Some(n) => format!("    int32_t {name}[{n}];\n"),
    });
    let members: String = members.collect();
    let read = match known {
        None => String::from("const AvsgTiling data = ReadTilingData(from)"),
        Some(words) => {
            let mut words = words.iter().map(i32::to_string);
            let mut take = |n: usize| words.by_ref().take(n).collect::<Vec<_>>().join(", ");
            let values = fields.iter().map(|(_, length)| match length {
                None => take(1),
                Some(n) => format!("{{{}}}", take(*n)),
            });
            let values: Vec<_> = values.collect();
            format!("static constexpr AvsgTiling data = {{{}}}", values.join(", "))
        }
    };
    HEADER.replace("@MEMBERS@", &members).replace("@READ@", &read)
}

/// Returns the name of a field, and the length of an array, from a line that declares one.
fn field(line: &str) -> Option<(String, Option<usize>)> {
    let (kind, arguments) = line.trim().strip_suffix(");")?.split_once('(')?;
    let arguments: Vec<_> = arguments.split(", ").collect();
    match (kind, &arguments[..]) {
        ("TILING_DATA_FIELD_DEF", ["int32_t", name]) => Some(((*name).into(), None)),
        ("TILING_DATA_FIELD_DEF_ARR", ["int32_t", n, name]) => {
            Some(((*name).into(), Some(n.parse().ok()?)))
        }
        _ => None,
    }
}

/// A copy of the tiling data passes through the start of UB, and ends with a barrier over all pipes.
const HEADER: &str = r#"#include "kernel_operator.h"
class AvsgTiling {
public:
@MEMBERS@};

[[maybe_unused]] __aicore__ inline AvsgTiling ReadTilingData(GM_ADDR from)
{
    using namespace AscendC;
    constexpr uint32_t WORDS = sizeof(AvsgTiling) / 4;
    GlobalTensor<int32_t> all;
    all.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t *>(from));
    const LocalTensor<int32_t> words(TPosition::VECCALC, 0, (WORDS + 7) / 8 * 8);
    DataCopyPad(words, all, DataCopyExtParams{1, 4 * WORDS, 0, 0, 0}, DataCopyPadExtParams<int32_t>{});
    SetFlag<HardEvent::MTE2_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_S>(EVENT_ID0);
    AvsgTiling data;
    for (uint32_t i = 0; i < WORDS; i++) {
        reinterpret_cast<int32_t *>(&data)[i] = words.GetValue(i);
    }
    PipeBarrier<PIPE_ALL>();
    return data;
}

#define GET_TILING_DATA(data, from) @READ@
"#;
