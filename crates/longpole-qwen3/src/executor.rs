//! Doing what a plan says: kernels by name, matrix products by size.

use std::collections::HashMap;
use std::rc::Rc;

use longpole_bench::cuda::{Buffer, Cuda, Function, Matmul, Module, Number};
use longpole_bench::measure::{Driver as _, Error};

use crate::kernels::Kernel;
use crate::ops::{ATTENTION_SHARED, Machine, Step};

/// Loaded kernels and prepared products of a device.
pub struct Executor {
    functions: HashMap<Kernel, Function>,
    products: HashMap<([u32; 3], bool), Matmul>,
    workspace: Option<Rc<Buffer>>,
    machine: Machine,
}

impl Executor {
    /// Loads every kernel.
    pub fn new(driver: &Cuda) -> Result<Self, Error> {
        let (major, minor) = driver.capability();
        if major < 8 {
            return Err(Error::Missing(format!("the device has compute capability {major}.{minor}, kernels here need 8.0")));
        }
        let mut modules: HashMap<&str, Rc<Module>> = HashMap::new();
        let mut functions = HashMap::new();
        for kernel in Kernel::ALL {
            let module = if let Some(module) = modules.get(kernel.file()) {
                module.clone()
            } else {
                let module = driver.load(kernel.image(), kernel.file())?;
                modules.insert(kernel.file(), module.clone());
                module
            };
            functions.insert(*kernel, driver.function(&module, kernel.entry())?);
        }
        let machine =
            Machine { sms: driver.device().sm_count.unwrap_or(1), shared_bytes: driver.block_shared_bytes(), streams: major >= 9 };
        let rings = [Kernel::GemvQkv, Kernel::GemvGateUp, Kernel::GemvAdd, Kernel::GemvLmHead]
            .map(|kernel| (kernel, crate::gemv::most_shared(machine)));
        for (kernel, bytes) in rings.into_iter().chain([(Kernel::AttentionPrefill, ATTENTION_SHARED)]) {
            if let Some(function) = functions.get(&kernel) {
                driver.allow_shared(function, bytes)?;
            }
        }
        Ok(Self { functions, products: HashMap::new(), workspace: None, machine })
    }

    /// What launches depend on of the device.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Prepares the products of a plan, so that doing it allocates nothing.
    pub fn prepare(&mut self, driver: &Cuda, steps: &[Step]) -> Result<(), Error> {
        for step in steps {
            let Step::Product { sizes, wide, .. } = step else { continue };
            if self.products.contains_key(&(*sizes, *wide)) {
                continue;
            }
            let workspace = match &self.workspace {
                Some(workspace) => workspace.clone(),
                None => self.workspace.insert(Matmul::workspace(driver)?).clone(),
            };
            self.products.insert((*sizes, *wide), Matmul::sharing(Number::F16, *wide, *sizes, &workspace)?);
        }
        Ok(())
    }

    /// Enqueues a plan.
    ///
    /// # Safety
    ///
    /// The addresses in the plan must be of buffers that are as long as the plan's sizes say and live until it is done.
    pub unsafe fn execute(&self, driver: &mut Cuda, steps: &[Step]) -> Result<(), Error> {
        for step in steps {
            match step {
                Step::Launch(launch) => {
                    let Some(function) = self.functions.get(&launch.kernel) else {
                        return Err(Error::Setup(format!("the kernel {} is not loaded", launch.kernel.entry())));
                    };
                    let mut arguments = launch.arguments.clone();
                    // SAFETY: `ops` gives each kernel the arguments that it declares, and lets begin early only those that wait; the rest is the
                    // caller's.
                    unsafe {
                        if launch.early && self.machine.streams {
                            driver.launch_early(function, launch.grid, &mut arguments)?;
                        } else {
                            driver.launch(function, launch.grid, &mut arguments)?;
                        }
                    }
                }
                Step::Product { sizes, wide, addresses: [a, b, out] } => {
                    let product =
                        self.products.get(&(*sizes, *wide)).ok_or_else(|| Error::Setup(format!("no product of {sizes:?} was prepared")))?;
                    // SAFETY: as the caller says.
                    unsafe { product.launch_at(driver, *a, *b, *out)? };
                }
            }
        }
        Ok(())
    }
}
