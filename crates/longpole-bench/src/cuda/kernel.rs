//! Kernels in CUDA C++, compiled by NVRTC when a benchmark is due, or ahead by nvcc.

use std::ffi::{CString, c_void};

use cudarc::driver::{result, sys};
use cudarc::nvrtc;

use crate::measure::Error;

use super::{Cuda, failed};

/// Compiled code on the device.
#[derive(Debug)]
pub struct Module {
    module: sys::CUmodule,
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the module was loaded once and is unloaded here only; functions keep it alive.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct Function {
    function: sys::CUfunction,
    /// Keeps the code loaded.
    _module: std::rc::Rc<Module>,
}

/// A launch's blocks and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks in x, y, z.
    pub blocks: [u32; 3],
    /// Threads of a block in x, y, z.
    pub threads: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Blocks in x that run at once and see each other's shared memory (a cluster, compute capability 9.0 and later); 1 for none.
    pub cluster: u32,
}

impl Grid {
    /// So many blocks of so many threads in a row.
    pub fn line(blocks: u32, threads: u32) -> Self {
        Self { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared_bytes: 0, cluster: 1 }
    }
}

/// An argument of a kernel, by value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// An address on the device.
    Address(u64),
    /// An `unsigned int`.
    U32(u32),
    /// An `unsigned long long`.
    U64(u64),
    /// A `float`.
    F32(f32),
}

impl Arg {
    fn pointer(&mut self) -> *mut c_void {
        match self {
            Self::Address(value) | Self::U64(value) => std::ptr::from_mut(value).cast(),
            Self::U32(value) => std::ptr::from_mut(value).cast(),
            Self::F32(value) => std::ptr::from_mut(value).cast(),
        }
    }
}

/// How to say that a library of CUDA's toolkit is missing.
pub(super) fn missing(name: &str, file: &str) -> Error {
    Error::Missing(format!(
        "{name} ({file}) was not found: add the folder it is in to LD_LIBRARY_PATH, such as the toolkit's lib64 or, with PyTorch installed, \
         the nvidia/*/lib folders of its site-packages"
    ))
}

/// A program of NVRTC, destroyed when dropped.
struct Program(nvrtc::sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it was created once and is destroyed here only.
        let _ = unsafe { nvrtc::result::destroy_program(self.0) };
    }
}

impl Cuda {
    /// Compiles CUDA C++ for this device. `name` is the file the source is from, which profilers show.
    ///
    /// Kernels are declared `extern "C"`. Machine code is asked for, not PTX: a driver older than the compiler would refuse its PTX.
    pub fn compile(&self, source: &str, name: &str) -> Result<std::rc::Rc<Module>, Error> {
        // SAFETY: it opens a library whose constructors are those of NVRTC.
        if !unsafe { nvrtc::sys::is_culib_present() } {
            return Err(missing("NVRTC, CUDA's run-time compiler,", "libnvrtc.so"));
        }
        let text = |text: &str| CString::new(text).map_err(|_| Error::Setup(format!("{name} holds a NUL character")));
        let (source, file) = (text(source)?, text(name)?);
        let program = Program(nvrtc::result::create_program(&source, Some(&file)).map_err(|error| said("nvrtcCreateProgram", error))?);
        let (major, minor) = self.capability;
        let options = [format!("--gpu-architecture=sm_{major}{minor}"), "--generate-line-info".to_owned(), "--std=c++17".to_owned()];
        // SAFETY: the program is valid.
        if let Err(error) = unsafe { nvrtc::result::compile_program(program.0, &options) } {
            // SAFETY: as above.
            let log = unsafe { nvrtc::result::get_program_log(program.0) }.unwrap_or_default();
            let log: Vec<u8> = log.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
            return Err(Error::Setup(format!("{name} does not compile ({error:?}):\n{}", String::from_utf8_lossy(&log).trim_end())));
        }
        let mut bytes = 0;
        // SAFETY: the program is compiled; the function writes one length.
        let asked = unsafe { nvrtc::sys::nvrtcGetCUBINSize(program.0, &raw mut bytes) };
        asked.result().map_err(|error| said("nvrtcGetCUBINSize", error))?;
        let mut image = vec![0u8; bytes];
        // SAFETY: the image is as long as the function was asked to say.
        let asked = unsafe { nvrtc::sys::nvrtcGetCUBIN(program.0, image.as_mut_ptr().cast()) };
        asked.result().map_err(|error| said("nvrtcGetCUBIN", error))?;
        // SAFETY: the image is a whole cubin, which carries its own length.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(failed("cuModuleLoadData"))?;
        Ok(std::rc::Rc::new(Module { module }))
    }

    /// Loads code that was compiled ahead: a cubin, or a fatbin, of which the driver takes what suits this device. `name` is what messages call it.
    pub fn load(&self, image: &[u8], name: &str) -> Result<std::rc::Rc<Module>, Error> {
        // The headers of both say how long they are, and the driver trusts them; both are read in words of 64 bits.
        let mut aligned = vec![0u64; image.len().div_ceil(8) + 1];
        aligned.iter_mut().zip(image.chunks(8)).for_each(|(word, bytes)| {
            let mut whole = [0u8; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        });
        // SAFETY: the image is whole and was made by NVIDIA's own compiler, since it is part of the program.
        let module = unsafe { result::module::load_data(aligned.as_ptr().cast()) };
        let module = module.map_err(|error| Error::call("cuModuleLoadData", format!("{} for {name}", super::said(error))))?;
        Ok(std::rc::Rc::new(Module { module }))
    }

    /// Lets blocks of a kernel have so many bytes of dynamic shared memory, where that is more than the 48 KiB that every kernel may have.
    pub fn allow_shared(&self, function: &Function, bytes: u32) -> Result<(), Error> {
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = i32::try_from(bytes).map_err(|_| Error::Setup(format!("no block has {bytes} bytes of shared memory")))?;
        // SAFETY: the function is loaded.
        unsafe { result::function::set_function_attribute(function.function, attribute, bytes) }.map_err(failed("cuFuncSetAttribute"))
    }

    /// Finds a kernel by its name.
    pub fn function(&self, module: &std::rc::Rc<Module>, name: &str) -> Result<Function, Error> {
        let name = CString::new(name).map_err(|_| Error::Setup("the name of a kernel holds a NUL character".to_owned()))?;
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(module.module, name) }.map_err(failed("cuModuleGetFunction"))?;
        Ok(Function { function, _module: module.clone() })
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    ///
    /// Number, order and types of the arguments must be those that the kernel declares, and the kernel must keep within the buffers whose
    /// addresses it is given, which must live until it is done.
    pub unsafe fn launch(&mut self, function: &Function, grid: Grid, arguments: &mut [Arg]) -> Result<(), Error> {
        // SAFETY: as the caller says.
        unsafe { self.enqueue(function, grid, arguments, false) }
    }

    /// Enqueues a kernel that may begin while the one before it still runs (programmatic dependent launch, compute capability 9.0 and later).
    ///
    /// # Safety
    ///
    /// As of [`Cuda::launch`]; and the kernel must wait by itself (`griddepcontrol.wait`) before it touches anything that launches before it
    /// write or read.
    pub unsafe fn launch_early(&mut self, function: &Function, grid: Grid, arguments: &mut [Arg]) -> Result<(), Error> {
        // SAFETY: as the caller says.
        unsafe { self.enqueue(function, grid, arguments, true) }
    }

    unsafe fn enqueue(&mut self, function: &Function, grid: Grid, arguments: &mut [Arg], early: bool) -> Result<(), Error> {
        let mut pointers: Vec<*mut c_void> = arguments.iter_mut().map(Arg::pointer).collect();
        let attribute = |id, value| sys::CUlaunchAttribute { id, pad: [0; 4], value };
        let mut attributes = Vec::new();
        if early {
            let value = sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 };
            attributes.push(attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, value));
        }
        if grid.cluster > 1 {
            let cluster = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: grid.cluster, y: 1, z: 1 };
            let value = sys::CUlaunchAttributeValue { clusterDim: cluster };
            attributes.push(attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
        }
        let config = sys::CUlaunchConfig {
            gridDimX: grid.blocks[0],
            gridDimY: grid.blocks[1],
            gridDimZ: grid.blocks[2],
            blockDimX: grid.threads[0],
            blockDimY: grid.threads[1],
            blockDimZ: grid.threads[2],
            sharedMemBytes: grid.shared_bytes,
            hStream: self.stream,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        self.launched += 1;
        // SAFETY: the function is loaded and the stream valid, configuration and attributes live until the call returns, the driver copies the
        // arguments; the rest is the caller's.
        unsafe { sys::cuLaunchKernelEx(&raw const config, function.function, pointers.as_mut_ptr(), std::ptr::null_mut()) }
            .result()
            .map_err(failed("cuLaunchKernelEx"))
    }
}

fn said(call: &'static str, error: nvrtc::result::NvrtcError) -> Error {
    Error::call(call, format!("{error:?}"))
}
