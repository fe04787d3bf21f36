//! A GPU with one stream, and what it owns: memory, modules, graphs and events, which are released on drop.
//!
//! Work in the stream runs in order, and only [`Gpu::wait`], [`Gpu::download`] and [`DeviceMemory::upload`] wait for it.
//! A release that fails is kept, and [`Gpu::finish`] returns it.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::slice;

use anyhow::{Result, ensure};

use super::driver::{Address, Driver, Failed, Handle, call};

/// An attribute of a GPU, by its number in `CUdevice_attribute`.
#[derive(Clone, Copy, Debug)]
pub enum Attribute {
    Multiprocessors = 16,
    L2Bytes = 38,
    MajorCapability = 75,
    MinorCapability = 76,
    SharedBytesOfBlock = 97,
}

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const DYNAMIC_SHARED_BYTES: c_int = 8;
/// `CU_STREAM_NON_BLOCKING`: other streams do not wait for it.
const NON_BLOCKING: c_uint = 1;
/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`.
const THREAD_LOCAL: c_int = 1;

/// The first GPU of this process, with its primary context and a stream.
pub struct Gpu {
    driver: Driver,
    device: c_int,
    retained: bool,
    stream: Handle,
    failed: RefCell<Option<Failed>>,
}

impl Gpu {
    /// Opens the first GPU of a driver.
    pub fn open(driver: Driver) -> Result<Self> {
        let failed = RefCell::new(None);
        let mut gpu = Self { driver, device: 0, retained: false, stream: null_mut(), failed };
        let mut context = null_mut();
        // SAFETY: the functions write an int and handles, and the context is retained until it is released.
        unsafe {
            call!(gpu.driver, cuDeviceGet(&raw mut gpu.device, 0))?;
            call!(gpu.driver, cuDevicePrimaryCtxRetain(&raw mut context, gpu.device))?;
            gpu.retained = true;
            call!(gpu.driver, cuCtxSetCurrent(context))?;
            call!(gpu.driver, cuStreamCreate(&raw mut gpu.stream, NON_BLOCKING))?;
        }
        Ok(gpu)
    }

    /// Releases the GPU.
    ///
    /// # Errors
    /// The first release that failed, also of what the GPU owned.
    pub fn finish(mut self) -> Result<()> {
        self.close();
        self.failed.take().map_or(Ok(()), |error| Err(error.into()))
    }

    fn close(&mut self) {
        if !self.stream.is_null() {
            // SAFETY: the stream is not used after it.
            self.keep(unsafe { call!(self.driver, cuStreamDestroy_v2(self.stream)) });
            self.stream = null_mut();
        }
        if self.retained {
            // SAFETY: the context was retained once, and nothing of it is used after it.
            self.keep(unsafe { call!(self.driver, cuDevicePrimaryCtxRelease_v2(self.device)) });
            self.retained = false;
        }
    }

    /// Keeps the first error of a release.
    fn keep(&self, released: Result<(), Failed>) {
        if let Err(error) = released {
            self.failed.borrow_mut().get_or_insert(error);
        }
    }

    fn own<T: Copy>(&self, value: T, name: &'static str, release: Release<T>) -> Owned<'_, T> {
        Owned { gpu: self, value, name, release }
    }

    /// Returns the driver.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns the name of the GPU.
    pub fn name(&self) -> Result<String> {
        let mut name = [0u8; 256];
        let (to, length) = (name.as_mut_ptr().cast(), name.len() as c_int - 1);
        // SAFETY: the function writes at most `length` bytes, and the last byte stays 0.
        unsafe { call!(self.driver, cuDeviceGetName(to, length, self.device)) }?;
        Ok(CStr::from_bytes_until_nul(&name)?.to_string_lossy().into_owned())
    }

    /// Returns an attribute of the GPU.
    pub fn attribute(&self, attribute: Attribute) -> Result<u32> {
        let mut value = 0;
        let number = attribute as c_int;
        // SAFETY: the function writes an int.
        unsafe { call!(self.driver, cuDeviceGetAttribute(&raw mut value, number, self.device)) }?;
        Ok(u32::try_from(value)?)
    }

    /// Allocates memory of the GPU.
    pub fn allocate(&self, bytes: usize) -> Result<DeviceMemory<'_>> {
        let mut address = 0;
        // SAFETY: the function writes an address.
        unsafe { call!(self.driver, cuMemAlloc_v2(&raw mut address, bytes)) }?;
        let free = self.driver.functions().cuMemFree_v2;
        Ok(DeviceMemory { owned: self.own(address, "cuMemFree_v2", free), bytes })
    }

    /// Allocates pinned host memory, which kernels can read at its own address.
    pub fn allocate_host(&self, bytes: usize) -> Result<HostMemory<'_>> {
        let mut at = null_mut();
        // SAFETY: the function writes an address.
        unsafe { call!(self.driver, cuMemHostAlloc(&raw mut at, bytes, 0)) }?;
        let free = self.driver.functions().cuMemFreeHost;
        Ok(HostMemory { owned: self.own(at, "cuMemFreeHost", free), bytes })
    }

    /// Loads machine code.
    pub fn load(&self, image: &[u8]) -> Result<Module<'_>> {
        let mut module = null_mut();
        // SAFETY: the driver reads as many bytes as the header of the image says, which nvcc has written, and writes a
        // handle.
        unsafe { call!(self.driver, cuModuleLoadData(&raw mut module, image.as_ptr().cast())) }?;
        Ok(Module(self.own(module, "cuModuleUnload", self.driver.functions().cuModuleUnload)))
    }

    /// Creates an event.
    pub fn event(&self) -> Result<Event<'_>> {
        let mut event = null_mut();
        // SAFETY: the function writes a handle.
        unsafe { call!(self.driver, cuEventCreate(&raw mut event, 0)) }?;
        let destroy = self.driver.functions().cuEventDestroy_v2;
        Ok(Event(self.own(event, "cuEventDestroy_v2", destroy)))
    }

    /// Starts a kernel.
    pub fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        let Launch { kernel, blocks, threads, .. } = *launch;
        let (mut pointers, mut scalars) = (launch.pointers.clone(), launch.scalars.clone());
        let mut list: Vec<*mut c_void> =
            pointers.iter_mut().map(|pointer| (&raw mut *pointer).cast()).collect();
        list.push(scalars.as_mut_ptr().cast());
        let (function, bytes, stream) = (kernel.handle, kernel.shared_bytes, self.stream);
        let (list, extra) = (list.as_mut_ptr(), null_mut());
        // SAFETY: the kernel has as many pointers as parameters and then a struct of as many words, which the driver
        // copies; its blocks access no memory but that of these pointers.
        unsafe {
            call!(
                self.driver,
                cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, bytes, stream, list, extra)
            )
        }?;
        Ok(())
    }

    /// Records what `work` puts into the stream, and makes a graph of it.
    pub fn capture(&self, work: impl FnOnce() -> Result<()>) -> Result<Graph<'_>> {
        let (mut graph, mut replayed) = (null_mut(), null_mut());
        // SAFETY: the stream exists, and each capture is ended below.
        unsafe { call!(self.driver, cuStreamBeginCapture_v2(self.stream, THREAD_LOCAL)) }?;
        let worked = work();
        // SAFETY: the function writes a handle.
        let ended = unsafe { call!(self.driver, cuStreamEndCapture(self.stream, &raw mut graph)) };
        let destroy = self.driver.functions().cuGraphDestroy;
        let graph = ended.map(|()| self.own(graph, "cuGraphDestroy", destroy));
        worked?;
        let graph = graph?;
        let to = &raw mut replayed;
        // SAFETY: the graph exists, and the function writes a handle of a copy.
        unsafe { call!(self.driver, cuGraphInstantiateWithFlags(to, graph.value, 0)) }?;
        let destroy = self.driver.functions().cuGraphExecDestroy;
        Ok(Graph(self.own(replayed, "cuGraphExecDestroy", destroy)))
    }

    /// Copies the first bytes of one memory to another, in the stream.
    ///
    /// # Errors
    /// If one of them has fewer bytes, or a call fails.
    pub fn copy(&self, to: Span, from: Span, bytes: usize) -> Result<()> {
        let least = to.bytes.min(from.bytes);
        ensure!(bytes <= least, "a copy of {bytes} bytes between memory of {least}");
        // SAFETY: both have as many bytes, and live until the copy is done: allocations of the driver, because their
        // release waits for it, and the caller's memory, because `upload` and `download` do.
        unsafe { call!(self.driver, cuMemcpyAsync(to.address, from.address, bytes, self.stream)) }?;
        Ok(())
    }

    /// Copies the first bytes of memory to the host, and waits for them and all work before.
    pub fn download(&self, from: Span, to: &mut [u8]) -> Result<()> {
        let bytes = to.len();
        self.copy(Span { address: to.as_mut_ptr() as Address, bytes }, from, bytes)?;
        self.wait()
    }

    /// Waits for all work in the stream.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the stream exists.
        unsafe { call!(self.driver, cuStreamSynchronize(self.stream)) }?;
        Ok(())
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        self.close();
    }
}

/// A launch of a kernel whose parameters are pointers and then a struct of words.
#[derive(Clone)]
pub struct Launch<'k> {
    pub kernel: &'k Function<'k>,
    pub blocks: u32,
    pub threads: u32,
    pub pointers: Vec<Address>,
    pub scalars: Vec<i32>,
}

/// A function of the driver that releases something.
type Release<T> = unsafe extern "C" fn(T) -> c_int;

/// Something of the driver that is released on drop.
struct Owned<'g, T: Copy> {
    gpu: &'g Gpu,
    value: T,
    name: &'static str,
    release: Release<T>,
}

impl<T: Copy> Drop for Owned<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the value is not used after it, and the driver waits for the work that uses it.
        let code = unsafe { (self.release)(self.value) };
        self.gpu.keep(self.gpu.driver.check(self.name, code));
    }
}

/// Some bytes at an address.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    address: Address,
    bytes: usize,
}

impl Span {
    /// Returns what is behind the first bytes of it.
    pub fn behind(self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        Self { address: self.address + bytes as Address, bytes: self.bytes - bytes }
    }
}

/// Memory of a GPU.
pub struct DeviceMemory<'g> {
    owned: Owned<'g, Address>,
    bytes: usize,
}

impl DeviceMemory<'_> {
    /// Returns its address.
    pub fn address(&self) -> Address {
        self.owned.value
    }

    /// Copies bytes to its start, and waits for the copy.
    pub fn upload(&self, bytes: &[u8]) -> Result<()> {
        let from = Span { address: bytes.as_ptr() as Address, bytes: bytes.len() };
        self.owned.gpu.copy(self.span(), from, bytes.len())?;
        self.owned.gpu.wait()
    }

    /// Returns all of it.
    pub fn span(&self) -> Span {
        Span { address: self.address(), bytes: self.bytes }
    }

    /// Fills all of it with zeros, in the stream.
    pub fn clear(&self) -> Result<()> {
        let gpu = self.owned.gpu;
        // SAFETY: the memory has as many bytes.
        unsafe { call!(gpu.driver, cuMemsetD8Async(self.address(), 0, self.bytes, gpu.stream)) }?;
        Ok(())
    }
}

/// Pinned host memory, which kernels only read.
pub struct HostMemory<'g> {
    owned: Owned<'g, *mut c_void>,
    bytes: usize,
}

impl HostMemory<'_> {
    /// Returns its address for kernels.
    pub fn address(&self) -> Address {
        self.owned.value as Address
    }

    /// Returns all of it.
    pub fn span(&self) -> Span {
        Span { address: self.address(), bytes: self.bytes }
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the memory has as many bytes, which the driver has set to 0, and the GPU does not write it.
        unsafe { slice::from_raw_parts(self.owned.value.cast(), self.bytes) }
    }

    /// Writes all of its words, before any work reads them. `word` gives each one by its number.
    pub fn fill(&mut self, word: impl Fn(u64) -> u64) {
        // SAFETY: the memory has as many words, is aligned to a page, and no work uses it.
        let words =
            unsafe { slice::from_raw_parts_mut(self.owned.value.cast::<u64>(), self.bytes / 8) };
        words.iter_mut().zip(0..).for_each(|(to, n)| *to = word(n));
    }
}

/// Loaded machine code.
pub struct Module<'g>(Owned<'g, Handle>);

impl Module<'_> {
    /// Returns a kernel that may use as many bytes of shared memory.
    pub fn function(&self, name: &str, shared_bytes: u32) -> Result<Function<'_>> {
        let (driver, module) = (&self.0.gpu.driver, self.0.value);
        let (mut handle, name) = (null_mut(), CString::new(name)?);
        // SAFETY: the module is loaded, and the function writes a handle.
        unsafe { call!(driver, cuModuleGetFunction(&raw mut handle, module, name.as_ptr())) }?;
        let bytes = shared_bytes as c_int;
        // SAFETY: the function belongs to the module.
        unsafe { call!(driver, cuFuncSetAttribute(handle, DYNAMIC_SHARED_BYTES, bytes)) }?;
        Ok(Function { handle, shared_bytes, module: PhantomData })
    }
}

/// A kernel of a module.
pub struct Function<'m> {
    handle: Handle,
    shared_bytes: u32,
    module: PhantomData<&'m ()>,
}

/// Work that is replayed.
pub struct Graph<'g>(Owned<'g, Handle>);

impl Graph<'_> {
    /// Starts the work, in the stream.
    pub fn replay(&self) -> Result<()> {
        let gpu = self.0.gpu;
        // SAFETY: the graph and the stream exist.
        unsafe { call!(gpu.driver, cuGraphLaunch(self.0.value, gpu.stream)) }?;
        Ok(())
    }
}

/// A point in the stream, with its time.
pub struct Event<'g>(Owned<'g, Handle>);

impl Event<'_> {
    /// Puts the event into the stream.
    pub fn record(&self) -> Result<()> {
        let gpu = self.0.gpu;
        // SAFETY: the event and the stream exist.
        unsafe { call!(gpu.driver, cuEventRecord(self.0.value, gpu.stream)) }?;
        Ok(())
    }

    /// Returns the microseconds since an earlier event, when the stream has reached both.
    pub fn us_since(&self, earlier: &Event<'_>) -> Result<f64> {
        let mut ms = 0.0f32;
        let (from, to) = (earlier.0.value, self.0.value);
        // SAFETY: both events exist, and the function writes a float.
        unsafe { call!(self.0.gpu.driver, cuEventElapsedTime(&raw mut ms, from, to)) }?;
        Ok(f64::from(ms) * 1e3)
    }
}
