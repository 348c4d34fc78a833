//! A program that uses CUDA and NVTX as far as the recorder can tell: it loads the injected libraries as the driver and NVTX do, and has the
//! mock of CUPTI make work.
//!
//! Its arguments are steps, done one after another; `help` among the names below is what each does. It prints nothing, and exits with 90 when
//! something is not as it has to be.

mod gpu;
mod nvtx;

use std::ffi::CString;
use std::process::exit;
use std::thread;
use std::time::Duration;

use gpu::Gpu;
use nvtx::Module;

/// Ends the program because something is not as it has to be.
#[expect(clippy::print_stderr, reason = "it tells whoever looks at the failed test")]
pub(crate) fn fail(what: &str) -> ! {
    eprintln!("mock-gpu-program: {what}");
    exit(90)
}

/// What steps share.
struct Program {
    gpu: Gpu,
    /// Two modules of a program each have tables of their own.
    modules: [&'static Module; 2],
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| fail(&format!("{text} is no number")))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut program = Program { gpu: Gpu::default(), modules: nvtx::modules() };
    program.run(&arguments);
}

impl Program {
    fn run(&mut self, steps: &[String]) {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            let (name, rest) = step.split_once(':').unwrap_or((step, ""));
            if name == "fork" {
                // The steps up to `join` are the child's.
                let length = steps[at..].iter().position(|step| step == "join").unwrap_or_else(|| fail("fork without join"));
                self.fork(&steps[at..at + length]);
                at += length + 1;
            } else {
                self.step(name, rest);
            }
        }
    }

    fn step(&mut self, name: &str, rest: &str) {
        match name {
            // Loads a libcupti first, as PyTorch does.
            "load" => self.gpu.load(rest),
            // Another profiler subscribes first.
            "foreign" => self.gpu.subscribe_first(),
            // The driver initialises and loads what CUDA_INJECTION64_PATH names.
            "cuda" => self.gpu.initialise(),
            "launch" => (0..number(rest)).for_each(|n| self.gpu.launch(c"decode_kernel", 7 + n % 2)),
            // The name is read when the record is: names of kernels live as long as their module.
            "launch-named" => self.gpu.launch(Box::leak(CString::new(rest).unwrap_or_default().into_boxed_c_str()), 7),
            "noise" => (0..number(rest)).for_each(|_: u32| self.gpu.noise()),
            "work" => self.gpu.all_kinds(),
            "graph" => {
                let (nodes, launches) = rest.split_once('x').unwrap_or((rest, "1"));
                self.gpu.graph(number(nodes), number(launches));
            }
            "profiler" => self.gpu.profiler(rest == "on"),
            "fault" => self.gpu.fault(rest),
            "drop" => self.gpu.drop_records(number(rest)),
            "hold" => self.gpu.hold(),
            "threads" => {
                let (threads, launches) = rest.split_once('x').unwrap_or((rest, "1"));
                self.threads(number(threads), number(launches));
            }
            // A module of the program calls NVTX for the first time.
            "nvtx" => self.modules[number::<usize>(rest)].initialise(),
            "push" => {
                self.modules[0].push(rest);
            }
            "pop" => {
                self.modules[0].pop();
            }
            "push1" => {
                self.modules[1].push(rest);
            }
            "pop1" => {
                self.modules[1].pop();
            }
            "every-nvtx-call" => self.modules[0].every_call(),
            "nvtx-flood" => (0..number(rest)).for_each(|_: u32| self.modules[0].mark("flood")),
            "sleep" => thread::sleep(Duration::from_millis(number(rest))),
            "take-descriptors" => take_descriptors(rest),
            "check-descriptors" => check_descriptors(),
            "check-errno" => self.check_errno(),
            "check-signals" => check_signals(),
            "exit" => exit(number(rest)),
            // SAFETY: ends the process without handlers.
            "quit" => unsafe { libc::_exit(number(rest)) },
            // SAFETY: a signal to ourselves.
            "kill" => unsafe {
                libc::kill(libc::getpid(), libc::SIGKILL);
            },
            "abort" => std::process::abort(),
            "exec" => replace(rest),
            "spawn" => spawn(rest),
            other => fail(&format!("no step {other}")),
        }
    }

    /// Launches from several threads at once, each within ranges of its own.
    fn threads(&self, threads: u32, launches: u32) {
        let (gpu, module) = (&self.gpu, self.modules[0]);
        thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    for _ in 0..launches {
                        module.push(&format!("thread {thread}"));
                        gpu.launch(c"threaded_kernel", 100 + thread);
                        module.pop();
                    }
                });
            }
        });
    }

    fn fork(&mut self, child: &[String]) {
        // SAFETY: the child runs on as any program does.
        match unsafe { libc::fork() } {
            -1 => fail("fork"),
            0 => {
                self.run(child);
                exit(0);
            }
            pid => {
                let mut status = 0;
                // SAFETY: the status goes to a place of ours.
                unsafe { libc::waitpid(pid, &raw mut status, 0) };
                if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
                    fail(&format!("the child's status is {status}"));
                }
            }
        }
    }

    /// No call of the recorder's may change what the program sees of its last error.
    fn check_errno(&self) {
        // SAFETY: the C library gives every thread a place for errno.
        let errno = unsafe { &mut *libc::__errno_location() };
        *errno = 4242;
        self.modules[0].push("errno");
        self.modules[0].pop();
        self.gpu.launch(c"errno_kernel", 7);
        self.gpu.flush();
        if *errno != 4242 {
            fail(&format!("errno is {errno}"));
        }
    }
}

/// Closes every descriptor, as daemons do, and opens a file of its own in place of each.
fn take_descriptors(path: &str) {
    let path = CString::new(path).unwrap_or_default();
    for descriptor in 3..64 {
        // SAFETY: closing what is not open is an error and nothing else.
        unsafe { libc::close(descriptor) };
    }
    for _ in 3..64 {
        // SAFETY: the path ends in a zero.
        if unsafe { libc::open(path.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600) } < 3 {
            fail("a file of our own cannot be opened");
        }
    }
}

/// Every descriptor is still open.
fn check_descriptors() {
    // SAFETY: asks only.
    if (3..64).any(|descriptor| unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0) {
        fail("a descriptor of ours was closed");
    }
}

/// Nobody has set a handler, and this thread blocks no signal.
fn check_signals() {
    for signal in 1..32 {
        if [libc::SIGKILL, libc::SIGSTOP, libc::SIGPIPE, libc::SIGSEGV, libc::SIGBUS].contains(&signal) {
            // Rust's own runtime, which this program has, sets the last three.
            continue;
        }
        // SAFETY: an action is plain numbers, for which zero is a value.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: asks only, into a place of ours.
        unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
        // The test of a full disk has this one ignored.
        if action.sa_sigaction != libc::SIG_DFL && signal != libc::SIGXFSZ {
            fail(&format!("there is a handler for signal {signal}"));
        }
    }
    // SAFETY: a set is plain numbers; it is asked for only.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut set);
        if (1..32).any(|signal| libc::sigismember(&raw const set, signal) == 1) {
            fail("signals are blocked");
        }
    }
}

/// Runs this program again, in place of itself.
fn replace(steps: &str) {
    use std::os::unix::process::CommandExt as _;
    let error = again(steps).exec();
    fail(&format!("exec: {error}"));
}

/// Runs this program again, as a child.
fn spawn(steps: &str) {
    if !again(steps).status().is_ok_and(|status| status.success()) {
        fail("the child failed");
    }
}

fn again(steps: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap_or_else(|_| fail("no path of this program")));
    command.args(steps.split(','));
    command
}
