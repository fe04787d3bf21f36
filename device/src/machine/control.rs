//! Macros for control. Each calls the method of its name with a body that is `#[inline(always)]`:
//! without the attribute each intrinsic of the body is a call (`tests/kernels/codegen.rs`).

/// `sweep!(m, n, |t| body)`
macro_rules! sweep {
    ($m:expr, $n:expr, |$t:ident| $body:expr) => {
        $m.sweep(
            $n,
            #[inline(always)]
            |$t| $body,
        )
    };
}

/// `repeat!(m, max, n, |r| body)`
macro_rules! repeat {
    ($m:expr, $max:expr, $n:expr, |$r:ident| $body:expr) => {
        $m.repeat(
            $max,
            $n,
            #[inline(always)]
            |$r| $body,
        )
    };
}

/// `when!(m, condition, || body)`
macro_rules! when {
    ($m:expr, $condition:expr, || $body:expr) => {
        $m.when(
            $condition,
            #[inline(always)]
            || $body,
        )
    };
}

/// `when_else!(m, condition, both, |both| body, |both| otherwise)`
macro_rules! when_else {
    ($m:expr, $condition:expr, $both:expr, |$a:ident| $body:expr, |$b:ident| $otherwise:expr) => {
        $m.when_else(
            $condition,
            $both,
            #[inline(always)]
            |$a| $body,
            #[inline(always)]
            |$b| $otherwise,
        )
    };
}

pub(crate) use {repeat, sweep, when, when_else};
