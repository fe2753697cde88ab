//! Fake OpenTelemetry collector. It decodes the protobuf by hand, so that tests check the bytes on the wire.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// How the collector responds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CollectorMode {
    /// Accepts every request.
    Accept,
    /// Reads the request and sends no response.
    Hang,
    /// Responds 401 and repeats the request head in the body.
    Reject,
}

/// One request to a collector.
#[derive(Debug, Clone)]
pub(crate) struct CollectorRequest {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Collector {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<CollectorRequest>>>,
}

/// A decoded span.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExportedSpan {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) parent: String,
    pub(crate) kind: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) status: u64,
}

impl Collector {
    pub(crate) fn start(mode: CollectorMode) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a port is free"), mode)
    }

    /// Starts an accepting collector at this address.
    pub(crate) fn start_at(address: SocketAddr) -> Self {
        Self::on(TcpListener::bind(address).expect("the port is still free"), CollectorMode::Accept)
    }

    fn on(listener: TcpListener, mode: CollectorMode) -> Self {
        let address = listener.local_addr().expect("a bound address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let received = Arc::clone(&received);
                thread::spawn(move || handle(&stream, mode, &received));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<CollectorRequest> {
        self.requests.lock().expect("no thread panicked").clone()
    }

    /// Returns all spans received up to now.
    pub(crate) fn spans(&self) -> Vec<ExportedSpan> {
        self.requests().iter().flat_map(|request| spans_of(&request.body)).collect()
    }
}

/// Reads one request and responds according to the mode.
fn handle(
    mut stream: &TcpStream,
    mode: CollectorMode,
    received: &Mutex<Vec<CollectorRequest>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length:"))?;
    let mut body = vec![0; length.trim().parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    received.lock().ok()?.push(CollectorRequest { head: head.clone(), body });
    let response = match mode {
        CollectorMode::Accept => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
        CollectorMode::Reject => {
            let length = head.len();
            format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {length}\r\n\r\n{head}")
        }
        // Blocks until the client closes the connection.
        CollectorMode::Hang => return reader.read(&mut [0]).ok().map(drop),
    };
    stream.write_all(response.as_bytes()).ok()
}

/// The value of a protobuf field.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("another varint byte");
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    number
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let width = match tag & 7 {
            0 => {
                fields.push((tag >> 3, Field::Number(varint(&mut bytes))));
                continue;
            }
            1 => 8,
            5 => 4,
            2 => usize::try_from(varint(&mut bytes)).expect("a length that fits"),
            wire_type => panic!("wire type {wire_type}"),
        };
        let (value, rest) = bytes.split_at(width);
        fields.push((tag >> 3, Field::Bytes(value)));
        bytes = rest;
    }
    fields
}

/// Returns the byte values (messages, texts, ids) of a field.
fn field_bytes(bytes: &[u8], number: u64) -> Vec<&[u8]> {
    let found = fields(bytes).into_iter().filter(|(known, _)| *known == number);
    found
        .filter_map(|(_, field)| if let Field::Bytes(b) = field { Some(b) } else { None })
        .collect()
}

fn field_number(bytes: &[u8], number: u64) -> Option<u64> {
    let found = fields(bytes).into_iter().filter(|(known, _)| *known == number);
    found.filter_map(|(_, field)| if let Field::Number(n) = field { Some(n) } else { None }).next()
}

fn field_text(bytes: &[u8], number: u64) -> String {
    String::from_utf8(field_bytes(bytes, number).concat()).expect("UTF-8 text")
}

fn field_hex(bytes: &[u8], number: u64) -> String {
    field_bytes(bytes, number).concat().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn field_attributes(bytes: &[u8], number: u64) -> BTreeMap<String, String> {
    let pairs = field_bytes(bytes, number).into_iter().map(|pair| {
        let value = field_bytes(pair, 2).concat();
        let number = field_number(&value, 3).map(|number| number.to_string());
        (field_text(pair, 1), number.unwrap_or_else(|| field_text(&value, 1)))
    });
    pairs.collect()
}

fn spans_of(request: &[u8]) -> Vec<ExportedSpan> {
    let mut spans = Vec::new();
    for resource_spans in field_bytes(request, 1) {
        let resource = field_attributes(&field_bytes(resource_spans, 1).concat(), 1);
        for span in
            field_bytes(resource_spans, 2).into_iter().flat_map(|scope| field_bytes(scope, 2))
        {
            spans.push(ExportedSpan {
                name: field_text(span, 5),
                trace: field_hex(span, 1),
                parent: field_hex(span, 4),
                kind: field_number(span, 6).unwrap_or_default(),
                attributes: field_attributes(span, 9),
                resource: resource.clone(),
                status: field_number(&field_bytes(span, 15).concat(), 3).unwrap_or_default(),
            });
        }
    }
    spans
}
