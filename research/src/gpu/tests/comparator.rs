//! The comparator has the misses of the policy that it implements, step for step.

use avsg_cli::baseline::Policy;

use super::super::device::Gpu;
use super::super::memory::{Memory, bytes, words};
use super::super::step::{Kernel, Step};
use super::super::texts::table_name;
use super::SMALL;
use super::libcuda::{Fake, Mode, images};
use crate::contenders::HiSparse;

#[test]
fn the_comparator_evicts_as_its_policy() {
    let Some(fake) = Fake::start(Mode::default()) else { return };
    let Some(images) = images(&SMALL) else { return };
    let images = images(90).unwrap();
    let gpu = Gpu::open(fake.driver()).unwrap();
    let p = SMALL.geometries().next().unwrap();
    let image = images.iter().find(|image| image.name == table_name(&p)).unwrap();
    let module = gpu.load(&image.code).unwrap();
    let kernel = Kernel::Comparator;
    let function = &kernel.find(&module, &p, SMALL.threads, image.shared_bytes).unwrap();
    let memory = &Memory::new(&gpu, &SMALL).unwrap();
    let (sizes, row_bytes, requests) = (&SMALL, 656, 1);
    let step = Step { kernel, function, memory, sizes, p, row_bytes, requests };
    let mut policy = HiSparse::new(p.slots as usize);
    memory.requests.upload(&bytes(&[1])).unwrap();
    memory.tables.upload(&kernel.empty_tables(&p, 1)).unwrap();
    let mut held = vec![-1; p.slots as usize];
    let (mut all, mut hits) = (0, 0);
    for n in 0..12 {
        // Selections move, and some return after a while.
        let first = [0, 300, 450, 900, 100, 1300][n % 6] + 40 * n as u32;
        let ids: Vec<i32> = (first..first + p.k).map(|i| SMALL.id(1, 0, i) as i32).collect();
        memory.ids.upload(&bytes(&ids)).unwrap();
        gpu.launch(&step.launch(p.k).unwrap()).unwrap();
        let mut table = vec![0; held.len() * 4];
        gpu.download(memory.tables.span(), &mut table).unwrap();
        let table = words(&table);
        let mut got: Vec<i32> = table.iter().filter(|id| !held.contains(id)).copied().collect();
        held = table;
        let mut want = Vec::new();
        policy.token(&ids, &mut want);
        (all, hits) = (all + ids.len(), hits + ids.len() - want.len());
        got.sort_unstable();
        want.sort_unstable();
        assert_eq!(got, want, "step {n}");
    }
    assert!(hits > all / 8 && hits < all * 7 / 8, "{hits} hits of {all}");
}
