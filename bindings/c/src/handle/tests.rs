//! A handle is valid until it is destroyed, and conflicting uses of its object are refused. That uses by many threads do
//! not overlap is checked by the random calls of `tests/fuzz`.

use super::*;
use crate::status::avsg_status::AVSG_OK;

struct Thing {
    n: u32,
}
enum Opaque {}
impl Object for Thing {
    type C = Opaque;
    const KIND: u64 = 3;
    const NAME: &'static str = "thing";
    type Fixed = u32;

    fn fixed(&self) -> u32 {
        self.n
    }
}

fn status<T>(result: Result<T>) -> crate::status::avsg_status {
    result.map_or_else(|fail| fail.status, |_| AVSG_OK)
}

#[test]
fn a_handle_is_valid_until_it_is_destroyed_and_never_again() {
    let old = create(Thing { n: 7 }).unwrap();
    assert_eq!(shared::<Thing>(old).unwrap().n, 7);
    exclusive::<Thing>(old).unwrap().n = 8;
    assert_eq!(status(destroy::<Thing>(old)), AVSG_OK);
    // Another handle gets the entry with another generation.
    let new: Vec<_> = (0..200).map(|i| create(Thing { n: i }).unwrap()).collect();
    assert!(!new.contains(&old));
    assert_eq!(status(shared::<Thing>(old)), AVSG_HANDLE);
    assert!(new.iter().zip(0..).all(|(&h, i)| shared::<Thing>(h).unwrap().n == i));
    new.into_iter().for_each(|handle| destroy::<Thing>(handle).unwrap());
}

#[test]
fn a_table_without_handles_is_zero() {
    let HandleEntry { word, object, birth, used } = &TABLE[MAX_HANDLES - 1];
    let object = object.load(Ordering::Relaxed).addr() as u64;
    let numbers = [word, birth, used].map(|number| number.load(Ordering::Relaxed));
    assert_eq!((numbers, object), ([0; 3], 0));
}

#[test]
fn exclusive_use_refuses_every_other_use() {
    let handle = create(Thing { n: 1 }).unwrap();
    let others = || [status(exclusive::<Thing>(handle)), status(destroy::<Thing>(handle))];
    let (a, b) = (shared::<Thing>(handle).unwrap(), shared::<Thing>(handle).unwrap());
    assert_eq!(others(), [AVSG_BUSY; 2]);
    drop(a);
    assert_eq!(others(), [AVSG_BUSY; 2]);
    drop(b);
    let only = exclusive::<Thing>(handle).unwrap();
    assert_eq!((others(), status(shared::<Thing>(handle))), ([AVSG_BUSY; 2], AVSG_BUSY));
    drop(only);
    destroy::<Thing>(handle).unwrap();
}

#[test]
fn what_never_changes_is_read_beside_every_use_but_the_end() {
    let handle = create(Thing { n: 1 }).unwrap();
    let read = || fixed::<Thing, _>(handle, |&n| Ok(n)).unwrap();
    let both = (shared::<Thing>(handle).unwrap(), read());
    assert_eq!(both.1, 1);
    drop(both);
    let mut only = exclusive::<Thing>(handle).unwrap();
    only.n = 2;
    assert_eq!((only.n, read()), (2, 1), "it was taken when the object was made");
    drop(only);
    let during = fixed::<Thing, _>(handle, |_| {
        exclusive::<Thing>(handle)?.n = 3;
        fixed::<Thing, _>(handle, |&n| Ok(n))
    });
    assert_eq!((during.unwrap(), shared::<Thing>(handle).unwrap().n), (1, 3));
    let index = index_and_tag(handle).unwrap().0;
    let end = Guard::new::<Thing>(handle, &Use::END).unwrap();
    assert_eq!(status(fixed::<Thing, _>(handle, |_| Ok(()))), AVSG_BUSY);
    assert_eq!(status(shared::<Thing>(handle)), AVSG_BUSY);
    drop(end);
    assert_eq!(TABLE[index].word.load(Ordering::Relaxed) & !TAG, 0, "nothing uses the object");
    destroy::<Thing>(handle).unwrap();
    assert_eq!(status(fixed::<Thing, _>(handle, |_| Ok(()))), AVSG_HANDLE);
}

#[test]
fn an_object_is_refused_after_a_panic_but_can_be_destroyed() {
    let handle = create(Thing { n: 1 }).unwrap();
    let broken = enter(|| {
        let _thing = exclusive::<Thing>(handle)?;
        panic!("on purpose");
    });
    assert_eq!(broken, AVSG_INTERNAL);
    assert_eq!(status(exclusive::<Thing>(handle)), AVSG_INTERNAL);
    assert_eq!(status(shared::<Thing>(handle)), AVSG_INTERNAL);
    assert_eq!(status(destroy::<Thing>(handle)), AVSG_OK);
    assert_eq!(status(destroy::<Thing>(handle)), AVSG_HANDLE);
}
