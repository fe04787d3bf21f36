//! The search for the runtime's library, the libraries that are refused, the functions that an engine calls, and the
//! errors of calls.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use avsg::ascend::acl::{Acl, Context, DeviceMemory, FUNCTIONS, Need, Source, Stream};
use avsg::ascend::simulated;
use avsg_sim::{Options, Session, resolve};

use crate::harness::{
    count, engine_over, expect_refusal, fail_next, in_session, plan_in_a_stream, seeded,
};
use crate::small::{self, K, ROW, check, ids, one_request};

/// Returns the names of the functions with this need.
fn names(need: Need) -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().filter(move |function| function.1 == need).map(|function| function.0)
}

/// Opens a compiled library of these functions, each of which returns `code`.
fn open_compiled(name: &str, functions: &[&str], code: i32) -> avsg::Result<Acl> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    let function = |name: &&str| match *name {
        // It returns a pointer: null means that there is no message.
        "aclGetRecentErrMsg" => format!("const char *{name}(void) {{ return 0; }}\n"),
        name => format!("int {name}(void) {{ return {code}; }}\n"),
    };
    fs::write(&source, functions.iter().map(function).collect::<String>()).unwrap();
    let mut compiler = avsg_sim::compiler::c().expect("a C compiler");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(compiler.status().expect("it starts").success());
    Acl::open(&Source::Path(library))
}

#[test]
fn a_missing_library_lists_the_names_that_were_tried() {
    // On an Ascend machine `Source::System` opens the real library, and there is no error to check.
    if let Err(error) = Acl::open(&Source::System) {
        expect_refusal::<()>(Err(error), &["libacl_rt.so", "libascendcl.so", "set_env.sh"]);
    }
    let error = Acl::open(&Source::Path("/nowhere/libascendcl.so".into())).unwrap_err();
    assert!(!error.to_string().contains("libacl_rt.so"), "only the path was tried: {error}");
    expect_refusal::<()>(Err(error), &["/nowhere/libascendcl.so", "No such file"]);
}

#[test]
fn the_link_stub_and_an_old_runtime_are_refused_by_what_they_lack() {
    let all: Vec<&str> = FUNCTIONS.iter().map(|function| function.0).collect();
    expect_refusal(open_compiled("stub", &all, 100_039), &["stub for linking"]);
    for lacks in ["aclrtHostRegister", "aclrtLaunchKernelWithConfig"] {
        let functions: Vec<&str> = names(Need::Required).filter(|name| *name != lacks).collect();
        let opened = open_compiled(lacks, &functions, 0);
        expect_refusal(opened, &[&format!("lacks {lacks}"), "8.1"]);
    }
    // A library without the optional functions is complete.
    open_compiled("floor", &names(Need::Required).collect::<Vec<_>>(), 0).unwrap();
}

#[test]
fn an_error_names_the_call_its_code_and_the_runtimes_message() {
    in_session(Options::default(), |session, context| {
        session.fail("aclrtMalloc", 1, 207_001);
        let text = DeviceMemory::new(context, 64).unwrap_err().to_string();
        assert!(!text.contains('\n'), "one line: {text}");
        let call = "aclrtMalloc failed with code 207001";
        assert!([call, "injected into call 1", "smaller chunks"].iter().all(|p| text.contains(p)));
        // A second initialisation succeeds.
        let acl = Arc::new(Acl::open(&simulated::source()).unwrap());
        assert!(count(session, "aclInit") == 2 && acl.name().contains("simulated"));
        expect_refusal(Context::for_device(acl, 3), &["device is 3"]);
    });
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
    // Nor is a stream's context the current one of this thread, which a capture needs.
    for stream in [&stream, &foreign] {
        stream.capture(|| Ok(())).unwrap();
    }
    drop((stream, foreign, context, other));
    assert_eq!(session.leaks(), Vec::<String>::new());
}

/// Resolves the required functions only.
fn resolve_required(name: &CStr) -> *mut c_void {
    let required = names(Need::Required).any(|required| required.as_bytes() == name.to_bytes());
    if required { resolve(name) } else { std::ptr::null_mut() }
}

#[test]
fn an_engine_calls_each_required_function_and_needs_no_other() {
    let session = Session::new(seeded(8));
    // SAFETY: the simulator's functions have the signatures of the list, which both crates share.
    let source = unsafe { Source::process("the smallest runtime", resolve_required) };
    let acl = Acl::open(&source).unwrap();
    assert!(acl.lacks(Need::Optional).eq(names(Need::Optional)));
    let context = Context::for_device(Arc::new(acl), 0).unwrap();
    let mut engine = engine_over(&session, &context, &small::config(1), small::pool()).unwrap();
    let mut plan = engine.new_plan(1, 1).unwrap();
    let owned = one_request(0, 1, ids(0));
    std::thread::scope(|scope| {
        // This thread has no current context.
        scope.spawn(|| engine.step(&owned.batch(), &mut plan, 0, None).unwrap());
    });
    check(&engine, &plan, &owned, 0);
    engine.discard(&mut plan).unwrap();
    let mut token = one_request(0, 1, vec![-1; K]);
    token.stable[0] = 599;
    engine.append(&token.batch(), &[0], &[&[0; ROW]]).unwrap();

    plan_in_a_stream(&mut engine, &mut plan, &owned, &[0], &context, |_| ());
    let stream = Stream::new(&context).unwrap();
    let parts = ["function is aclmdlRICaptureBegin, but the smallest runtime"];
    expect_refusal(stream.capture(|| Ok(())), &parts);

    drop((stream, plan, context));
    engine.close().unwrap();
    assert_eq!(session.leaks(), Vec::<String>::new());
    let calls: BTreeSet<&str> = session.calls().into_iter().collect();
    assert_eq!(calls, names(Need::Required).collect());
}

/// The failed release of one engine is no failure of another one in its context, and an engine that is closed returns it.
#[test]
fn an_error_of_a_drop_is_reported_by_its_context_and_by_no_call_of_another_engine() {
    in_session(Options::default(), |session, context| {
        let config = small::config(2);
        let engine = || engine_over(session, context, &config, small::pool()).unwrap();
        let (first, mut second) = (engine(), engine());
        let mut plan = second.new_plan(2, 2).unwrap();
        fail_next(session, "aclrtFree", 1);
        drop(first);
        let owned = one_request(0, 1, ids(0));
        second.step(&owned.batch(), &mut plan, 0, None).unwrap();
        check(&second, &plan, &owned, 0);
        // The error is still there for those who ask the context. It is reported once, and the second attempt has
        // freed the memory.
        expect_refusal(context.take_error(), &["aclrtFree failed with code 507899"]);
        context.take_error().unwrap();
        drop(plan);
        fail_next(session, "aclrtFree", 1);
        expect_refusal(second.close(), &["aclrtFree failed with code 507899"]);
    });
}
