//! Small reports of Nsight Compute, written byte by byte, with secrets and hostile names wherever a report can hold text.

/// A protobuf message under construction.
#[derive(Clone, Default)]
pub(crate) struct Message(Vec<u8>);

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

impl Message {
    fn number(mut self, field: u64, value: u64) -> Self {
        varint(field << 3, &mut self.0);
        varint(value, &mut self.0);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        varint(field << 3 | 2, &mut self.0);
        varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }
}

fn message() -> Message {
    Message::default()
}

fn sized(message: &Message, out: &mut Vec<u8>) {
    out.extend((message.0.len() as u32).to_le_bytes());
    out.extend_from_slice(&message.0);
}

/// A report with these kernels; `header` holds further fields of the block.
fn report(names: &[&str], header: Message, kernels: &[Message]) -> Vec<u8> {
    let mut payload = Vec::new();
    for kernel in kernels {
        sized(kernel, &mut payload);
    }
    let table = names.iter().fold(message(), |table, name| table.text(1, name));
    let header = header.number(2, kernels.len() as u64).message(4, &table).number(5, payload.len() as u64);
    let mut bytes = b"NVR\0".to_vec();
    sized(&message().number(1, 7), &mut bytes);
    sized(&header, &mut bytes);
    bytes.extend(payload);
    bytes
}

/// A report of a run in which nothing was profiled.
pub(crate) fn empty() -> Vec<u8> {
    report(&[], message(), &[])
}

fn kernel(name: &str) -> Message {
    message().text(5, name).text(6, name).text(7, &format!("{name}(int)"))
}

/// So many results without a byte.
pub(crate) fn results_of_no_bytes(results: usize) -> Vec<u8> {
    report(&[], message(), &vec![message(); results])
}

/// So many kernels with one metric each.
pub(crate) fn many(kernels: usize) -> Vec<u8> {
    let duration = message().number(1, 0).message(2, &message().number(5, 1_000));
    report(&["gpu__time_duration.sum"], message(), &vec![kernel("k").message(13, &duration); kernels])
}

/// One kernel, of which nothing was collected.
pub(crate) fn plain() -> Vec<u8> {
    report(&[], message(), &[kernel("k")])
}

/// A report with `text` in every place that holds text, and `path` where there is a path.
pub(crate) fn with_text(text: &str, path: &str) -> Vec<u8> {
    let value = message().text(1, text);
    let metric = |name: u64, value: &Message| message().number(1, name).message(2, value);
    let duration = metric(0, &message().number(5, 1_000));
    let words = metric(1, &value).message(3, &message().message(1, &value).message(2, &value));
    let range = message().number(1, 0).message(3, &message().text(1, text));
    let nvtx = message().message(2, &message().number(1, 7).message(2, &range));
    let said = message().text(1, &format!("{text} said. And more of {text}.")).number(2, 4).text(4, text);
    let speedup = message().number(1, 2).bytes(2, &[]);
    let body = message().message(1, &message().message(1, &said)).message(1, &message().message(10, &speedup));
    let rule = message().text(1, text).text(2, text).message(3, &body).text(4, text);
    let kernel =
        kernel(&format!("kernel_{text}")).number(1, 7).message(13, &duration).message(13, &words).message(19, &rule).message(21, &nvtx);
    let system = message().text(1, text).text(5, text);
    let settings = message().text(1, path).text(2, path).text(3, &format!("--token={text}")).text(4, &format!("TOKEN={text}"));
    let device = message().text(2, text);
    let session = message()
        .message(3, &system)
        .message(4, &system)
        .message(6, &device)
        .text(7, text)
        .message(8, &message().text(1, "Nsight Compute Target").text(2, text))
        .message(9, &settings)
        .text(11, &format!("ncu --clock-control {text} {path} --token={text}"));
    let process = message().number(1, 1).text(2, text).text(3, path);
    let header = message().message(3, &session).message(6, &process);
    report(&["gpu__time_duration.sum", &format!("metric_{text}")], header, &[kernel.clone(), kernel])
}
