//! A collector of traces: takes what is posted to it, and reads the protobuf by hand, so that what is
//! tested is what went over the wire.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// How a collector treats those who come.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manner {
    /// Takes everything.
    Takes,
    /// Reads, and says nothing.
    Hangs,
    /// Refuses, and repeats all that it was told.
    Refuses,
}

/// One request to a collector.
#[derive(Debug, Clone)]
pub(crate) struct Posted {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

pub(crate) struct Collector {
    address: SocketAddr,
    posted: Arc<Mutex<Vec<Posted>>>,
}

/// A span as it was exported.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exported {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) parent: String,
    pub(crate) kind: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) resource: BTreeMap<String, String>,
    pub(crate) status: u64,
}

impl Collector {
    pub(crate) fn start(manner: Manner) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a port is free"), manner)
    }

    /// One that takes everything, where it is expected.
    pub(crate) fn start_at(address: SocketAddr) -> Self {
        Self::on(TcpListener::bind(address).expect("the port is still free"), Manner::Takes)
    }

    fn on(listener: TcpListener, manner: Manner) -> Self {
        let address = listener.local_addr().expect("it has an address");
        let posted = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&posted);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let taken = Arc::clone(&taken);
                thread::spawn(move || attend(&stream, manner, &taken));
            }
        });
        Self { address, posted }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn posted(&self) -> Vec<Posted> {
        self.posted.lock().expect("nobody panics here").clone()
    }

    /// Every span so far.
    pub(crate) fn spans(&self) -> Vec<Exported> {
        self.posted().iter().flat_map(|posted| spans_of(&posted.body)).collect()
    }
}

/// Reads one request, and treats it as is its manner.
fn attend(mut stream: &TcpStream, manner: Manner, taken: &Mutex<Vec<Posted>>) -> Option<()> {
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
    taken.lock().ok()?.push(Posted { head: head.clone(), body });
    let answer = match manner {
        Manner::Takes => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
        Manner::Refuses => {
            let length = head.len();
            format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {length}\r\n\r\n{head}")
        }
        // Until the other side gives up.
        Manner::Hangs => return reader.read(&mut [0]).ok().map(drop),
    };
    stream.write_all(answer.as_bytes()).ok()
}

/// A field of a message: its number, and a number or bytes.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("the number goes on");
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
            2 => usize::try_from(varint(&mut bytes)).expect("it fits"),
            other => panic!("wire type {other}"),
        };
        let (value, rest) = bytes.split_at(width);
        fields.push((tag >> 3, Field::Bytes(value)));
        bytes = rest;
    }
    fields
}

/// The messages, texts or ids under a number.
fn under(bytes: &[u8], number: u64) -> Vec<&[u8]> {
    let found = fields(bytes).into_iter().filter(|(known, _)| *known == number);
    found
        .filter_map(|(_, field)| if let Field::Bytes(b) = field { Some(b) } else { None })
        .collect()
}

fn number_under(bytes: &[u8], number: u64) -> Option<u64> {
    let found = fields(bytes).into_iter().filter(|(known, _)| *known == number);
    found.filter_map(|(_, field)| if let Field::Number(n) = field { Some(n) } else { None }).next()
}

fn text_under(bytes: &[u8], number: u64) -> String {
    String::from_utf8(under(bytes, number).concat()).expect("texts are UTF-8")
}

fn hex_under(bytes: &[u8], number: u64) -> String {
    under(bytes, number).concat().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes_under(bytes: &[u8], number: u64) -> BTreeMap<String, String> {
    let pairs = under(bytes, number).into_iter().map(|pair| {
        let value = under(pair, 2).concat();
        let number = number_under(&value, 3).map(|number| number.to_string());
        (text_under(pair, 1), number.unwrap_or_else(|| text_under(&value, 1)))
    });
    pairs.collect()
}

fn spans_of(request: &[u8]) -> Vec<Exported> {
    let mut spans = Vec::new();
    for of_resource in under(request, 1) {
        let resource = attributes_under(&under(of_resource, 1).concat(), 1);
        for span in under(of_resource, 2).into_iter().flat_map(|scope| under(scope, 2)) {
            spans.push(Exported {
                name: text_under(span, 5),
                trace: hex_under(span, 1),
                parent: hex_under(span, 4),
                kind: number_under(span, 6).unwrap_or_default(),
                attributes: attributes_under(span, 9),
                resource: resource.clone(),
                status: number_under(&under(span, 15).concat(), 3).unwrap_or_default(),
            });
        }
    }
    spans
}
