//! The search for the runtime's library, the libraries that are refused, and the errors of calls.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use avsg::ascend::acl::{Acl, Context, DeviceMemory, Event, OPTIONAL, REQUIRED, Source, Stream};
use avsg::ascend::simulated;
use avsg_sim::{Options, Session};

/// Compiles a shared library of these functions, each of which returns `code`.
fn compile_library(name: &str, functions: &[&str], code: i32) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    let text: String =
        functions.iter().map(|f| format!("int {f}(void) {{ return {code}; }}\n")).collect();
    // This function returns a pointer: null means that there is no message.
    let text = text.replace(
        &format!("int aclGetRecentErrMsg(void) {{ return {code}; }}"),
        "const char *aclGetRecentErrMsg(void) { return 0; }",
    );
    fs::write(&source, text).unwrap();
    let mut compiler = avsg_sim::compiler::c().expect("a C compiler");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(compiler.status().expect("it starts").success());
    library
}

#[test]
fn a_missing_library_lists_the_names_that_were_tried() {
    // On an Ascend machine `Source::System` opens the real library, and there is no error to check.
    if let Err(error) = Acl::open(&Source::System) {
        let text = error.to_string();
        assert!(text.contains("libacl_rt.so") && text.contains("libascendcl.so"), "{text}");
        assert!(text.contains("set_env.sh"), "{text}");
    }
    let error = Acl::open(&Source::Path("/nowhere/libascendcl.so".into())).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/nowhere/libascendcl.so") && text.contains("No such file"), "{text}");
    assert!(!text.contains("libacl_rt.so"), "only the path was tried: {text}");
}

#[test]
fn the_link_stub_is_recognised() {
    let all: Vec<&str> = REQUIRED.iter().chain(OPTIONAL).copied().collect();
    let error = Acl::open(&Source::Path(compile_library("stub", &all, 100_039))).unwrap_err();
    assert!(error.to_string().contains("stub for linking"), "{error}");
}

#[test]
fn an_old_runtime_is_refused_by_the_name_that_it_lacks() {
    for lacks in ["aclrtHostRegister", "aclrtLaunchKernelWithConfig"] {
        let functions: Vec<&str> = REQUIRED.iter().copied().filter(|name| *name != lacks).collect();
        let error = Acl::open(&Source::Path(compile_library(lacks, &functions, 0))).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("lacks {lacks}")) && text.contains("8.1"), "{text}");
    }
    // A library without the optional functions is complete.
    Acl::open(&Source::Path(compile_library("floor", REQUIRED, 0))).unwrap();
}

#[test]
fn a_second_initialisation_succeeds() {
    let session = Session::new(Options::default());
    Acl::open(&simulated::source()).unwrap();
    let acl = Acl::open(&simulated::source()).unwrap();
    assert_eq!(session.calls().iter().filter(|call| **call == "aclInit").count(), 2);
    assert!(acl.name().contains("simulated"));
    drop(acl);
    assert!(!session.calls().iter().any(|call| call.starts_with("aclFinalize")));
}

#[test]
fn an_error_names_the_call_its_code_and_the_runtimes_message() {
    let session = Session::new(Options::default());
    let context = simulated::context().unwrap();
    session.fail("aclrtMalloc", 1, 207_001);
    let text = DeviceMemory::new(&context, 64).unwrap_err().to_string();
    for part in ["aclrtMalloc failed with code 207001", "injected into call 1", "smaller chunks"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains('\n'), "one line: {text}");
    let absent =
        Context::for_device(Arc::new(Acl::open(&simulated::source()).unwrap()), 3).unwrap_err();
    assert!(absent.to_string().contains("device is 3"), "{absent}");
}

#[test]
fn a_failed_drop_is_reported_by_its_context_and_by_no_other_call() {
    let session = Session::new(Options::default());
    let context = simulated::context().unwrap();
    let memory = DeviceMemory::new(&context, 64).unwrap();
    session.fail("aclrtFree", 1, 507_899);
    drop(memory);
    drop(Event::sync(&context).unwrap());
    let error = context.take_error().unwrap_err();
    assert!(error.to_string().contains("aclrtFree failed with code 507899"), "{error}");
    // The error is reported once, and the second attempt has freed the memory.
    context.take_error().unwrap();
    drop(context);
    assert_eq!(session.leaks(), Vec::<String>::new());
}

#[test]
fn objects_work_on_other_threads_and_in_other_contexts() {
    let session = Session::new(Options { devices: 2, ..Options::default() });
    let acl = Arc::new(Acl::open(&simulated::source()).unwrap());
    let other = Context::for_device(Arc::clone(&acl), 1).unwrap();
    let context = Context::for_device(acl, 0).unwrap();
    // The current context of this thread is still that of device 1, which was set first.
    let (stream, foreign) = (Stream::new(&context).unwrap(), Stream::new(&other).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // This thread has no current context.
            let memory = DeviceMemory::zeroed(&context, 4096).unwrap();
            let mut bytes = [7; 16];
            // SAFETY: nothing writes the memory.
            unsafe { memory.read(64, &mut bytes).unwrap() };
            assert_eq!(bytes, [0; 16]);
            stream.synchronize(1000).unwrap();
        });
    });
    // Nor is a stream's context the current one of this thread, which recording an event needs.
    for (context, stream) in [(&context, &stream), (&other, &foreign)] {
        Event::sync(context).unwrap().record(stream).unwrap();
    }
    drop((stream, foreign, context, other));
    assert_eq!(session.leaks(), Vec::<String>::new());
}
