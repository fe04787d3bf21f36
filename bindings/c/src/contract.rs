//! What arguments keep, which the header states once for every function.

/// Evaluates an unsafe expression with what a C program passed.
macro_rules! contract {
    ($expression:expr) => {
        // SAFETY: a pointer that an exported function gets is NULL only where that is allowed, and points to
        // as many elements as the length beside it, or to a struct of `size` bytes. They do not change during
        // the call and share no byte with memory that it writes (the header's rules Pointers and Structs). A
        // stream lives, and what the work put into it uses stays valid and unwritten until that work and its
        // replays are done (Streams). Other functions pass on what they got (`# Safety`).
        unsafe { $expression }
    };
}
