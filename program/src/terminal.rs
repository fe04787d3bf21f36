//! Standard output and standard error: lines that do not panic when nobody reads them, and the width of
//! the terminal.

use std::any::TypeId;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use terminal_size::{Width, terminal_size_of};

use crate::quantity::count;

/// The exit status after the reader of standard output is gone, as of a program that SIGPIPE ended.
const CLOSED_PIPE: u8 = 141;

/// Prints a line to standard error, in place of the standard macro, which panics if nobody reads it.
macro_rules! eprintln {
    ($($words:tt)*) => { crate::terminal::print_error(format_args!($($words)*)) };
}

/// Prints a line to standard error. A closed standard error leaves nobody to tell.
pub fn print_error(words: Arguments<'_>) {
    let _ = io::stderr().write_all(format!("{words}\n").as_bytes());
}

/// Parses the command line of a program. Help and versions go to standard output as everything else does.
pub fn parse<P: clap::Parser>() -> Result<P, ExitCode> {
    let command = with_numbers(P::command());
    let parsed = command.try_get_matches().and_then(|matches| P::from_arg_matches(&matches));
    parsed.map_err(|words| match words.print() {
        Err(error) if !words.use_stderr() => ExitCode::from(exit_status(&error.into())),
        _ => ExitCode::from(words.exit_code() as u8),
    })
}

/// Lets the options of a command and of its subcommands take numbers of things with a suffix. They also take a
/// negative number, so that the message about one names the option and its limit: the parser would take it for an
/// option of its own.
fn with_numbers(command: clap::Command) -> clap::Command {
    let option = |arg: clap::Arg| {
        let kind = arg.get_value_parser().type_id();
        let is_option = arg.get_action().takes_values() && !arg.is_positional();
        let arg = match is_option {
            true if kind == TypeId::of::<usize>() => arg.value_parser(count::<usize>),
            true if kind == TypeId::of::<u32>() => arg.value_parser(count::<u32>),
            _ => arg,
        };
        arg.allow_negative_numbers(is_option)
    };
    command.mut_args(option).mut_subcommands(with_numbers)
}

/// Returns the exit status for a failure, and prints its message: 2 for input that was refused and for
/// files that cannot be read or written, 1 for any other failure. A closed pipe ends without a message,
/// because its reader has read all that it wanted.
pub fn exit_status(error: &anyhow::Error) -> u8 {
    let kind = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(avsg::Error::Os { source, .. }) => Some(source.kind()),
        Some(_) => Some(ErrorKind::Other),
        None => cause.downcast_ref::<io::Error>().map(io::Error::kind),
    };
    let kinds: Vec<ErrorKind> = error.chain().filter_map(kind).collect();
    if kinds.contains(&ErrorKind::BrokenPipe) {
        return CLOSED_PIPE;
    }
    eprintln!("avsg: {error:#}");
    if kinds.is_empty() { 1 } else { 2 }
}

/// Returns the columns of the terminal on standard output, or else the number in the environment
/// variable COLUMNS; `None` if there is neither, and then lines may have any length.
pub fn width() -> Option<u16> {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal_size_of(io::stdout()).map(|(Width(width), _)| width).or_else(columns)
}
