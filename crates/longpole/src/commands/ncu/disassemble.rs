//! SASS text from `nvdisasm`, where it is installed. Reports hold machine code only; the tool is NVIDIA's and not part of this program.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use longpole_ncu::source::{Cubin, Disassembly, SmVersion, raw_architecture};

/// Longest run of the tool.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time between two looks at whether it has ended.
const TICK: Duration = Duration::from_millis(5);

/// Most text that is read of it.
const MOST_TEXT: u64 = 256 << 20;

/// Runs the tool, and stops trying once it turned out not to be there.
pub(super) struct Disassembler {
    is_off: AtomicBool,
}

impl Disassembler {
    pub(super) fn new(is_off: bool) -> Self {
        Self { is_off: AtomicBool::new(is_off) }
    }

    /// The text of one function; `None` where there is no tool. An error is one sentence, and no reason to stop.
    pub(super) fn run(&self, cubin: &[u8], sm: Option<SmVersion>, mangled: &str) -> Result<Option<Disassembly>, String> {
        if self.is_off.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // What the cubin lacks is said by the view that is made from it.
        let Ok(parsed) = Cubin::parse(cubin) else { return Ok(None) };
        let code = parsed.function(mangled).and_then(|function| parsed.code(&function));
        let (Some(code), Some(sm)) = (code, sm.or_else(|| parsed.sm_version())) else { return Ok(None) };
        let text = text_of(code, &raw_architecture(sm)).map_err(|error| error.to_string())?;
        let Some(text) = text else {
            self.is_off.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        let disassembly = Disassembly::parse_raw(mangled, &text);
        if disassembly.is_empty() { Err("it printed no instructions".to_owned()) } else { Ok(Some(disassembly)) }
    }
}

/// What the tool makes of the code of one function, since libraries have thousands in a cubin; `None` if it is not installed. Its output goes to a file, so that it never waits for a reader.
fn text_of(code: &[u8], architecture: &str) -> io::Result<Option<String>> {
    let mut input = tempfile::Builder::new().prefix("longpole").suffix(".bin").tempfile()?;
    input.write_all(code)?;
    input.flush()?;
    let mut output = tempfile::tempfile()?;
    let mut command = Command::new("nvdisasm");
    command.args(["-b", architecture]).arg(input.path()).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > PATIENCE || size(&output) > MOST_TEXT {
            // It may have ended by itself just now, which is as good.
            let _ = child.kill();
            child.wait()?;
            return Err(io::Error::other(format!("it was stopped after {} s", started.elapsed().as_secs())));
        }
        std::thread::sleep(TICK);
    };
    if !status.success() {
        return Err(io::Error::other(format!("it ended with {status}")));
    }
    output.rewind()?;
    let mut text = Vec::new();
    output.take(MOST_TEXT).read_to_end(&mut text)?;
    Ok(Some(String::from_utf8_lossy(&text).into_owned()))
}

fn size(file: &File) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}
