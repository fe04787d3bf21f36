//! Numbers of the command line with a suffix: `128K` tokens, `4G` of memory.

/// Parses a number of things, where K, M and G are powers of 1024.
pub fn count<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let whole = scaled(text, 1024.0).filter(|&n| n >= 0.0 && n.fract() == 0.0 && n < 2f64.powi(63));
    let number = text.parse().ok().or(whole.map(|n| n as u64));
    number.and_then(|n| N::try_from(n).ok()).ok_or_else(|| {
        "it must be a whole number in its range, such as 131072 or 128K, where K, M and G are powers of 1024".to_owned()
    })
}

/// Parses memory in GB, which are 10^9 bytes, and returns its bytes. K, M and G are powers of 1000, Ki, Mi and Gi of 1024.
pub fn gigabytes(text: &str) -> Result<f64, String> {
    let bytes = text.parse().map(|gb: f64| gb * 1e9).ok().or_else(|| scaled(text, 1e3));
    bytes.filter(|bytes| *bytes > 0.0 && bytes.is_finite()).ok_or_else(|| {
        "it must be above 0, such as 4 or 4G for 4 * 10^9 bytes, or 4Gi for 4 * 2^30".to_owned()
    })
}

/// Parses a number that is not negative.
pub fn not_negative(text: &str) -> Result<f64, String> {
    number(text, |number| number >= 0.0, "it must be a number of at least 0, such as 50")
}

/// Parses a number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    number(text, |number| number > 0.0, "it must be a number above 0, such as 50")
}

/// Parses a share in percent.
pub fn percent(text: &str) -> Result<f64, String> {
    let holds = |number| (1.0..=100.0).contains(&number);
    number(text, holds, "it must be 1 to 100 percent; pass 90 for 90 %")
}

/// Parses a finite number that `holds`.
fn number(text: &str, holds: impl Fn(f64) -> bool, limit: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&number: &f64| number.is_finite() && holds(number));
    number.ok_or_else(|| limit.to_owned())
}

/// Parses a number whose suffix is a power of `base`; with i behind it, it is one of 1024, and with B alone one of 1000.
fn scaled(text: &str, base: f64) -> Option<f64> {
    let end = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(end);
    let unit = unit.to_ascii_uppercase();
    let (letter, end) = unit.split_at(1);
    let base = match end {
        "" => base,
        "B" => 1e3,
        "I" | "IB" => 1024.0,
        _ => return None,
    };
    let power = ["K", "M", "G", "T"].iter().position(|name| *name == letter)? + 1;
    Some(number.trim_end().parse::<f64>().ok()? * base.powi(power as i32))
}
