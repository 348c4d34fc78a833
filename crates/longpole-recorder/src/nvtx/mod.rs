//! NVTX, from the side of the tool: every module of a program that uses NVTX (the executable, each shared library) has its own table of
//! functions that do nothing, and asks the injected library once to put its own there.
//!
//! The interface is NVTX version 3's, which has been stable since 2017: an export table of callbacks (number 1) whose second member gives the
//! function table of an API module, an array of addresses of function pointers. The markers could also be left to CUPTI, but only to the very copy
//! that records; so they are taken here.

mod callbacks;
pub(crate) mod names;

use std::ffi::{c_int, c_void};
use std::mem::size_of;

pub(crate) use callbacks::RangeWatch;

/// `NVTX_ETID_CALLBACKS`.
const EXPORT_CALLBACKS: u32 = 1;
/// `NVTX_CB_MODULE_CORE`.
const MODULE_CORE: u32 = 1;
/// `NVTX_CB_MODULE_CORE2`, the functions with domains.
const MODULE_CORE2: u32 = 5;

/// What NVTX hands to the injected library.
pub(crate) type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// A function pointer of whatever type.
type AnyFunction = unsafe extern "C" fn();

/// The export table of callbacks.
#[repr(C)]
struct ExportTable {
    size: usize,
    function_table: Option<unsafe extern "C" fn(u32, *mut *mut *mut Option<AnyFunction>, *mut u32) -> c_int>,
}

/// Puts our functions into the tables of one module of the program; whether there were any.
///
/// # Safety
///
/// The function must be the one that NVTX hands over.
pub(crate) unsafe fn install(get_export_table: GetExportTable) -> bool {
    // SAFETY: NVTX gives null or a table that lives as long as the module.
    let table = unsafe { get_export_table(EXPORT_CALLBACKS).cast::<ExportTable>() };
    // SAFETY: the size is the table's first member in every version.
    if table.is_null() || unsafe { (*table).size } < size_of::<ExportTable>() {
        return false;
    }
    // SAFETY: the table is as large as that.
    let Some(function_table) = (unsafe { (*table).function_table }) else { return false };
    let mut installed = false;
    for (module, functions) in [(MODULE_CORE, callbacks::core()), (MODULE_CORE2, callbacks::core2())] {
        let mut slots = std::ptr::null_mut();
        let mut count = 0;
        // SAFETY: both answers go to places of ours.
        if unsafe { function_table(module, &raw mut slots, &raw mut count) } == 0 || slots.is_null() {
            continue;
        }
        for (slot, function) in functions {
            if slot >= count {
                continue;
            }
            // SAFETY: the table has `count` slots, each null or the address of a function pointer of the module.
            unsafe {
                let place = *slots.add(slot as usize);
                if !place.is_null() {
                    place.write(Some(function));
                    installed = true;
                }
            }
        }
    }
    installed
}
