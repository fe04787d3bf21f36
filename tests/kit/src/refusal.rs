//! The form of every error: one line that names the value, the limit and the remedy.

/// Checks that the error is one line, has a remedy and contains all of `parts`, and returns it.
///
/// # Panics
/// If there is no error, or it has another form.
#[track_caller]
pub fn expect_error<T>(result: avsg::Result<T>, parts: &[&str]) -> String {
    let Err(error) = result else { panic!("an error was expected: {parts:?}") };
    let text = error.to_string();
    assert!(!text.contains('\n') && text.contains("; "), "one line, with a remedy: {text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{parts:?} in {text:?}");
    text
}
