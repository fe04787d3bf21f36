//! The sessions of a kept file, and the data of its tokens.

use std::ffi::c_void;

use avsg::pool::Role;

use crate::boundary::{self, check_capacity, enter, give_struct};
use crate::handle;
use crate::pool::{Pool, avsg_pool};
use crate::status::avsg_status;

/// What a session of a kept file has: tokens whose rows and data last, and bytes of the caller. Token t is row
/// t % n of block blocks[t / n], for blocks of n = `session_rows` rows. The rows of its tokens, and all rows of
/// a block that several sessions have, cannot be written (AVSG_INVALID) until a commit without them has returned.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct avsg_session {
    /// sizeof(avsg_session).
    pub size: usize,
    /// The number of tokens.
    pub length: usize,
    /// The blocks, each once; NULL if there are none.
    pub blocks: *mut i32,
    /// Elements of `blocks`.
    pub block_count: usize,
    /// Bytes of the caller; NULL if there are none.
    pub data: *mut c_void,
    /// The length of `data`, at most `session_bytes`.
    pub bytes: usize,
}

/// Gives what the last commit of a session has left, also after a kill or a loss of power; a session that never was
/// committed has no tokens. `blocks` and `data` are filled if `block_count` and `bytes`, which say their room
/// before the call and the numbers afterwards, are not 0. AVSG_INVALID if the room is too little, or the session
/// is damaged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_get_session(
    pool: *const avsg_pool,
    session: usize,
    out: *mut avsg_session,
) -> avsg_status {
    let get = || {
        let found = handle::shared::<Pool>(pool)?.host.stored(Role::Reader)?.session(session)?;
        let room = contract!(boundary::read(out))?;
        let (block_count, bytes) = (found.blocks.len(), found.bytes.len());
        if room.block_count != 0 {
            check_capacity(block_count, room.block_count, "blocks")?;
            contract!(boundary::array_mut("blocks", room.blocks, block_count))?
                .copy_from_slice(&found.blocks);
        }
        if room.bytes != 0 {
            check_capacity(bytes, room.bytes, "bytes")?;
            contract!(boundary::array_mut("data", room.data.cast(), bytes))?
                .copy_from_slice(&found.bytes);
        }
        Ok(avsg_session { length: found.length, block_count, bytes, ..room })
    };
    contract!(give_struct(out, get))
}

/// Makes all rows and data of tokens of the file durable, and then a session: `length` may be more or fewer than
/// before, and 0 without blocks removes it. AVSG_LOST_ROWS if a row or the data of a new token was not written,
/// as far as this process knows. After AVSG_OS the session is as before or as it was to be, and the pool is to
/// be closed and opened again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_commit_session(
    pool: *const avsg_pool,
    session: usize,
    to: *const avsg_session,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let to = contract!(boundary::read(to))?;
        let blocks = contract!(boundary::array("blocks", to.blocks.cast_const(), to.block_count))?;
        let data = contract!(boundary::array("data", to.data.cast_const().cast(), to.bytes))?;
        Ok(pool.host.stored(Role::Writer)?.commit_session(session, to.length, blocks, data)?)
    })
}

/// Writes the data of the tokens in the rows from `first` on: `token_bytes` for each, one after another, such as its id
/// and the keys of its indexers. A flush or commit makes it durable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_write_tokens(
    pool: *const avsg_pool,
    first: usize,
    data: *const c_void,
    bytes: usize,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let data = contract!(boundary::array::<u8>("data", data.cast(), bytes)?);
        Ok(pool.host.stored(Role::Writer)?.write_tokens(first, data)?)
    })
}

/// Reads the data of the tokens in the rows from `first` on. AVSG_LOST_ROWS, with `data` undefined, if some is not
/// whole.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn avsg_pool_read_tokens(
    pool: *const avsg_pool,
    first: usize,
    data: *mut c_void,
    bytes: usize,
) -> avsg_status {
    enter(|| {
        let pool = handle::shared::<Pool>(pool)?;
        let data = contract!(boundary::array_mut::<u8>("data", data.cast(), bytes)?);
        Ok(pool.host.stored(Role::Reader)?.read_tokens(first, data)?)
    })
}
