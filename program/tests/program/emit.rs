//! Tests of `avsg emit` and `avsg opp`: their files are complete and the same on every run, and the
//! declarations of an operator project agree with the kernels. Headers in `tests/opp` replace CANN's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use avsg::device::params::Params;
use avsg::device::tiling::{Launch, Segment, Tiling};

use avsg_linker::ascend::object::check_type;

use crate::support::{folder, has, has_cpp_compiler, stand_in_for_cann, text};

const KERNELS: [&str; 5] = ["avsg_plan", "avsg_transfer", "avsg_step", "avsg_append", "avsg_reset"];

const FAKE_CANN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opp/fake_cann");

/// Runs a subcommand that writes into `dir`, and returns its standard output.
fn write(line: &str, dir: &Path) -> String {
    text(&format!("{line} --out {}", dir.display()))
}

/// Runs a tool, which must succeed, and returns its standard output.
fn run_tool(command: &mut Command) -> String {
    let output = command.output().expect("the tool starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}:\n{shown}{errors}");
    shown.into_owned()
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

#[test]
fn emit_writes_every_kernel_and_the_same_bytes_again() {
    let (one, two) = (folder("emit-1"), folder("emit-2"));
    has(&write("emit", &one), &KERNELS);
    write("emit --soc Ascend910B3", &two);
    run_tool(Command::new("diff").arg("-r").args([&one, &two]));
    for entry in fs::read_dir(&one).expect("a folder") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("a text");
        check_includes(&one, &text);
        assert!(!text.contains('@'), "a placeholder in {text}");
    }
}

/// The stand-in for CMake refuses a project that CANN would refuse, or whose kernels would hang.
#[test]
fn an_emitted_folder_builds_as_its_project_says() {
    let (home, stand_in) = stand_in_for_cann("builds");
    let kernels = home.join("kernels");
    let output = write("emit --soc ascend910b4", &kernels);
    let command = output.lines().find(|line| line.trim().starts_with("cmake -S ")).expect("a hint");
    let mut build = Command::new("bash");
    build.args(["-ec", command]).env("ASCEND_HOME_PATH", home);
    run_tool(build.env("PATH", format!("{stand_in}:{}", env!("PATH"))));
    for name in KERNELS {
        let object = fs::read(kernels.join(format!("fatbin/{name}/{name}.o"))).expect("an object");
        assert_eq!(check_type(&object, name, name == "avsg_step"), Ok(()));
        has(&String::from_utf8_lossy(&object), &["for ascend910b4\n"]);
    }
}

/// Checks that every header that `text` includes is in `dir`, except for CANN's.
fn check_includes(dir: &Path, text: &str) {
    let included = text.lines().filter_map(|line| line.strip_prefix("#include \""));
    for name in included.map(|rest| rest.trim_end_matches('"')) {
        assert!(name == "kernel_operator.h" || dir.join(name).exists(), "no {name}");
    }
}

/// The JSON files have the shape of those in packages for a 910B.
#[test]
fn a_package_whose_step_would_hang_is_refused() {
    let dir = folder("packages");
    write("opp", &dir.join("project"));
    let stand_in = dir.join("cmake");
    fs::write(&stand_in, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
    let out = dir.join("project/build_out");
    let kernels = out.join("op_kernel/ascend910b/avsg_step");
    fs::create_dir_all(&kernels).unwrap();
    fs::write(out.join("custom_opp_linux.run"), "").unwrap();
    for (ratio, built) in [("0:1", true), ("1:2", false)] {
        let json = format!(
            "{{\n    \"binFileName\": \"AvsgStep_5a\",\n    \"coreType\": \"MIX\",\n    \"intercoreSync\": 1,\n    \"taskRation\": \"{ratio}\"\n}}\n"
        );
        fs::write(kernels.join("AvsgStep_5a.json"), json).unwrap();
        let mut build = Command::new(dir.join("project/build.sh"));
        let path = format!("{}:{}", dir.display(), env!("PATH"));
        let output = build.env("ASCEND_HOME_PATH", "/").env("PATH", path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), built, "{ratio}: {said}");
        assert_eq!(said.contains("does not state \"taskRation\":\"0:1\""), !built, "{said}");
    }
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
    let folder = project.join("op_kernel");
    for name in KERNELS {
        has(&calls, &[&format!("op_host/{name}.cpp")]);
        let kernel = fs::read_to_string(folder.join(format!("{name}.cpp"))).expect("the kernel");
        has(&kernel, &["#include \"avsg_"]);
        check_includes(&folder, &kernel);
    }
    let presets = fs::read_to_string(project.join("CMakePresets.json")).expect("presets");
    let presets: serde_json::Value = serde_json::from_str(&presets).expect("JSON");
    let unit = &presets["configurePresets"][0]["cacheVariables"]["ASCEND_COMPUTE_UNIT"]["value"];
    assert_eq!(unit, "ascend910b");
}

/// The host parts and the example compile. The host parts declare the kernels' arguments in their order, and compute the same tiling
/// words for a launch as the library. That the kernels compile and run is checked by `linker/tests/emitted/operator.rs`.
#[test]
fn the_operators_agree_with_the_kernels() {
    if !has_cpp_compiler() {
        return;
    }
    let compiler = || avsg_sim::compiler::cpp().expect("it was found above");
    let dir = folder("agree");
    write("opp --page 64 --lifetime learned", &dir);
    assert_eq!(fs::read(dir.join("rules.f16")).expect("the rules").len(), 512);
    let program = dir.join("check");
    let options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", FAKE_CANN];
    run_tool(compiler().args(options).arg("-fsyntax-only").arg(dir.join("example/avsg_step.cpp")));
    let mut compile = compiler();
    compile.args(options).arg("-I").arg(dir.join("op_host")).arg("-o").arg(&program);
    compile.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/opp/check.cpp"));
    compile.args(KERNELS.map(|name| dir.join(format!("op_host/{name}.cpp"))));
    run_tool(&mut compile);
    let output = run_tool(Command::new(&program).arg("100"));
    // The operators that take ids refuse rows without any, and rows of more than K.
    for k in ["0", "2049"] {
        let refused = Command::new(&program).arg(k).output().expect("the program starts");
        assert_eq!(refused.status.code(), Some(2), "{k}: {refused:?}");
    }

    let p = Params { page: 64, ..Params::wide(2048, 1, 8192) };
    let segments = [(1024, 12, 2), (128, 15, 1)].map(|(bytes, chunk_shift, chunks)| Segment {
        bytes,
        host_stride: bytes,
        host_gap: 0,
        kv_stride: bytes,
        kv_gap: 0,
        fresh_stride: bytes,
        chunk_shift,
        chunks,
    });
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
        let launched = "blocks 40 schedule 1 workspace 16777216 tiling";
        has(step, &[&format!("{launched} {}", words.join(" "))]);
    }

    assert_eq!(output.lines().count(), KERNELS.len());
    for name in KERNELS {
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
