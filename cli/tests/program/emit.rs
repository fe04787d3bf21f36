//! Tests of `avsg emit` and `avsg opp`: their files are complete and the same on every run, and the
//! declarations of an operator project agree with the kernels. Headers in `tests/opp` replace CANN's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../../../linker/tests/emitted/operator_compiler.rs"]
mod operator_compiler;

use avsg::device::params::Params;
use avsg::device::tiling::{Launch, Segment, Tiling};

use crate::support::{folder, has_cpp_compiler, refused, text};

/// The arguments of each kernel, in the order in which launches pass them.
const KERNELS: [(&str, &str); 5] = [
    (
        "avsg_plan",
        "ids cuQ state generation stableLen seqLen blockTable tables rules slotBlocks slot valid \
         missPos missId missSlot missRow record workspace tiling",
    ),
    (
        "avsg_transfer",
        "cuQ state missSlot missRow record hostChunks kv0 kv1 slotBlocks fresh0 fresh1 workspace tiling",
    ),
    (
        "avsg_step",
        "ids cuQ state generation stableLen seqLen blockTable tables rules hostChunks kv0 kv1 \
         slotBlocks fresh0 fresh1 slot valid missPos missId missSlot missRow record workspace tiling",
    ),
    (
        "avsg_append",
        "cuQ state stableLen seqLen blockTable hostChunks fresh0 fresh1 workspace tiling",
    ),
    ("avsg_reset", "tables workspace tiling"),
];

const FAKE_CANN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opp/fake_cann");

/// Runs a subcommand that writes into `dir`, and returns its standard output.
fn write(line: &str, dir: &Path) -> String {
    text(&format!("{line} --out {}", dir.display()))
}

/// Runs a tool, which must succeed, and returns its standard output.
fn run_tool(command: &mut Command) -> String {
    let output = command.output().expect("the tool starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}:\n{}{errors}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the name and the text of every file in a folder.
fn files_in(dir: &Path) -> BTreeMap<PathBuf, String> {
    let paths = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    let file = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a text");
        (path.file_name().expect("a name").into(), text)
    };
    paths.map(file).collect()
}

/// Returns the names of a kernel's parameters. The macro of the geometry's header passes or leaves out
/// those in its parentheses.
fn parameters(folder: &Path, kernel: &str) -> Vec<String> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("an emitted file");
    let passes = read("avsg_geometry.h").contains("#define AVSG_UPDATED(...) __VA_ARGS__,\n");
    let text = read(&format!("{kernel}.cpp"));
    let (_, signature) = text.split_once(&format!("void {kernel}(")).expect("an entry point");
    let (signature, _) = signature.split_once(")\n{").expect("its parameters");
    let (own, updated) = signature.split_once("AVSG_UPDATED(").expect("updated arrays");
    let (updated, last) = updated.split_once(')').expect("an end");
    let list = if passes { format!("{own}{updated},{last}") } else { format!("{own}{last}") };
    list.split(',').map(|name| name.trim().trim_start_matches("GM_ADDR ").into()).collect()
}

/// The files for a GPU include each other and nothing else.
#[test]
fn emit_writes_every_kernel_and_the_same_bytes_again() {
    for (first, again, is_cuda) in [
        ("emit", "emit --soc Ascend910B3 --target ascendc", false),
        ("emit --target cuda --tokens 4 --plan", "emit --target cuda --tokens 4", true),
    ] {
        let (one, two) = (folder("emit-1"), folder("emit-2"));
        let page = write(first, &one);
        write(again, &two);
        let written = files_in(&one);
        assert!(written == files_in(&two) && (!is_cuda || written.len() == 15), "{page}");
        for (name, text) in written {
            assert!(is_cuda || !text.contains('@'), "{}: a placeholder is left", name.display());
            check_includes(&one, &text);
            let is_foreign = text.contains("#include <") || text.contains("kernel_operator.h");
            assert!(!is_cuda || !is_foreign, "{name:?}");
        }
        if is_cuda {
            let parts = ["bytes of shared memory", "never run on a GPU"];
            assert!(parts.iter().all(|part| page.contains(part)), "{page}");
            continue;
        }
        for (name, args) in KERNELS {
            assert!(page.contains(name), "{page}");
            assert_eq!(parameters(&one, name).join(" "), args);
        }
    }
}

/// The stand-in for CMake refuses a project that CANN would refuse, or whose kernels would hang.
#[test]
fn an_emitted_folder_builds_as_its_project_says() {
    let dir = folder("builds");
    let (kernels, home) = (dir.join("kernels"), dir.join("cann"));
    let output = write("emit --soc ascend910b4", &kernels);
    let modules = home.join("compiler/tikcpp/ascendc_kernel_cmake");
    fs::create_dir_all(&modules).expect("a folder");
    fs::write(modules.join("ascendc.cmake"), "").expect("a module");
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../linker/tests/stand_in");
    let command = output.lines().find(|line| line.trim().starts_with("cmake -S ")).expect("a hint");
    run_tool(
        Command::new("bash")
            .args(["-ec", command])
            .env("ASCEND_HOME_PATH", home)
            .env("PATH", format!("{stand_in}:{}", env!("PATH"))),
    );
    for (name, _) in KERNELS {
        let object = kernels.join(format!("fatbin/{name}/{name}.o"));
        let object = fs::read_to_string(object).expect("an object");
        let mix = if name == "avsg_step" { "_mix_aiv" } else { "" };
        assert!(object.starts_with(&format!("// .ascend.meta.{name}{mix} for ascend910b4\n")));
    }
}

/// Checks that every header that `text` includes is in `dir`, except for CANN's.
fn check_includes(dir: &Path, text: &str) {
    let included = text.lines().filter_map(|line| line.strip_prefix("#include \""));
    for name in included.map(|rest| rest.trim_end_matches('"')) {
        assert!(name == "kernel_operator.h" || dir.join(name).exists(), "no {name}");
    }
}

#[test]
fn refused_input_is_one_line_with_the_known_names() {
    refused("emit --soc ascend310p", &["--soc is ascend310p", "ascend910b3"]);
    refused("emit --target opencl", &["--target is opencl", "ascendc and cuda"]);
    refused("emit --target cuda --threads 100", &["--threads is 100", "256, 512 or 1024"]);
    refused(
        "emit --target cuda --k 8192 --threads 256",
        &["--threads is 256", "choose more threads"],
    );
    refused("emit --slots 1000", &["1000", "multiple of 64"]);
    refused("emit --slots 4160", &["S (slots) is 4160", "multiple of 128"]);
    refused("opp --out /dev/null/x --soc b5", &["--soc is b5"]);
    refused("emit --slots 32768 --spread 4", &["unified buffer is", "S 32768", "187360"]);
}

/// The fake CANN module records every call, and fails if a named file does not exist.
#[test]
fn the_operator_project_configures_under_cmake() {
    if !Command::new("cmake").arg("--version").output().is_ok_and(|o| o.status.success()) {
        println!("skipped: cmake is not installed");
        return;
    }
    let dir = folder("configures");
    let project = dir.join("project");
    write("opp", &project);
    let build = dir.join("build");
    let modules = format!("{FAKE_CANN}/cmake");
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(&project).arg("-B").arg(&build).arg(format!("-DASC_DIR={modules}"));
    run_tool(&mut cmake);
    let calls = fs::read_to_string(build.join("calls.txt")).expect("the recorded calls");
    let lines: Vec<_> = calls.lines().map(|line| line.split(' ').next().unwrap_or("")).collect();
    let expected = "package code_gen library library library package_add kernel_options \
                    kernel_sources kernel_library package_add";
    assert_eq!(lines.join(" ").replace("npu_op_", ""), expected);
    for (name, _) in KERNELS {
        assert!(calls.contains(&format!("op_host/{name}.cpp")), "{calls}");
        let folder = project.join("op_kernel");
        let kernel = fs::read_to_string(folder.join(format!("{name}.cpp"))).expect("the kernel");
        assert!(kernel.contains("#include \"avsg_"), "{kernel}");
        check_includes(&folder, &kernel);
    }
    let presets = fs::read_to_string(project.join("CMakePresets.json")).expect("presets");
    let presets: serde_json::Value = serde_json::from_str(&presets).expect("JSON");
    let unit = &presets["configurePresets"][0]["cacheVariables"]["ASCEND_COMPUTE_UNIT"]["value"];
    assert_eq!(unit, "ascend910b");
}

/// The host parts and the example compile. The host parts declare the kernels' arguments in their order, and compute the same tiling
/// words for a launch as the library.
#[test]
fn the_operators_agree_with_the_kernels() {
    if !has_cpp_compiler() {
        return;
    }
    let [mut compile, mut example, mut kernel] =
        std::array::from_fn(|_| avsg_sim::compiler::cpp().expect("it was found above"));
    let dir = folder("agree");
    write("opp --page 64 --lifetime learned", &dir);
    assert_eq!(fs::read(dir.join("rules.f16")).expect("the rules").len(), 512);
    let program = dir.join("check");
    let options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", FAKE_CANN];
    example.args(options).arg("-fsyntax-only").arg(dir.join("example/avsg_step.cpp"));
    run_tool(&mut example);
    compile.args(options).arg("-I").arg(dir.join("op_host")).arg("-o").arg(&program);
    compile.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opp/check.cpp"));
    compile.args(KERNELS.map(|(name, _)| dir.join(format!("op_host/{name}.cpp"))));
    run_tool(&mut compile);
    let output = run_tool(Command::new(&program).arg("100"));
    // The operators that take ids refuse rows without any, and rows of more than K.
    for k in ["0", "2049"] {
        let refused = Command::new(&program).arg(k).output().expect("the program starts");
        assert_eq!(refused.status.code(), Some(2), "{k}: {refused:?}");
    }
    // The operator compiler includes the tiling data before each kernel.
    let declared = fs::read_to_string(dir.join("op_host/avsg_launch.h")).expect("the tiling data");
    let header = dir.join("pointer.h");
    fs::write(&header, operator_compiler::tiling_header(&declared, None)).expect("a file");
    kernel.args(["-std=c++17", "-fsyntax-only", "-I"]);
    kernel.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../linker/shim"));
    kernel.arg("-include").arg(header);
    run_tool(kernel.args(KERNELS.map(|(name, _)| dir.join(format!("op_kernel/{name}.cpp")))));

    let p = Params { page: 64, ..Params::wide(2048, 1, 8192) };
    let segment = |bytes, chunk_shift, chunks| Segment {
        bytes,
        host_stride: bytes,
        host_gap: 0,
        kv_stride: bytes,
        kv_gap: 0,
        fresh_stride: bytes,
        chunk_shift,
        chunks,
    };
    let segments = [segment(1024, 12, 2), segment(128, 15, 1)];
    let launch = Launch {
        requests: 3,
        rows: 5,
        k: 100,
        ids_stride: 100,
        block_stride: 40,
        pool_units: 4000,
        states: 7,
        cores: 40,
        copy_cores: 16,
        host_block_shift: 0,
        kv_block_shift: 7,
        kv_blocks: 500,
        slot_base: Some(9),
        segments: &segments,
    };
    // With 100 ids per row each core takes whole requests; with 2048, cores share the requests.
    for k in [100, 2048] {
        let tiling = Tiling::new(&p, &Launch { k, ids_stride: k, ..launch });
        let tiling = tiling.expect("a launch within limits");
        assert_eq!(tiling.sharers > 1, k == 2048);
        let words: Vec<_> = tiling.words().iter().map(i32::to_string).collect();
        let output = run_tool(Command::new(&program).arg(k.to_string()));
        let step = output.lines().find(|line| line.starts_with("AvsgStep ")).expect("the step");
        let scalars = words.join(" ");
        let expected = format!("blocks 40 schedule 1 workspace 16777216 tiling {scalars}");
        assert!(step.contains(&expected), "{step}\n{expected}");
    }

    assert_eq!(output.lines().count(), KERNELS.len());
    for (name, _) in KERNELS {
        let kind = name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
        let kind: String = kind.collect();
        let line = output.lines().find(|line| line.starts_with(&format!("{kind} ")));
        let line = line.unwrap_or_else(|| panic!("no {kind} in\n{output}"));
        let (declared, _) = line.split_once(" |").expect("a launch");
        let given = parameters(&dir.join("op_kernel"), name);
        // The order is inputs, outputs, workspace, tiling. Arrays that are updated in place are inputs
        // and outputs.
        let word =
            |w: &str| w.trim_end_matches('?').split(':').next().unwrap_or("").replace('_', "");
        let (inputs, outputs) = declared.split_once(" ->").expect("outputs");
        let inputs: Vec<_> = inputs.split(' ').skip(2).map(word).collect();
        let outputs = outputs.split(' ').filter(|w| !w.is_empty()).map(word);
        let outputs: Vec<_> =
            outputs.map(|w| if inputs.contains(&w) { w + "out" } else { w }).collect();
        let last = ["workspace".to_string(), "tiling".to_string()];
        let declared: Vec<_> = inputs.into_iter().chain(outputs).chain(last).collect();
        let given: Vec<_> = given.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(declared, given, "{name}");
    }
}
