//! The text form of addresses, without logins.

use std::fmt;
use std::path::Path;

use super::escape::Escaped;
use super::parts::{HostPort, Layout, Servers, TlsFiles};
use super::{Address, Login};

/// Parses to the same address, if it has no login.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = if self.login.is_some() { "***@" } else { "" };
        let mut query = Vec::new();
        match &self.servers {
            Servers::Unix { path, database } => {
                write!(f, "unix://{login}{}", escaped(path))?;
                if *database != 0 {
                    query.push(format!("db={database}"));
                }
            }
            Servers::Network { layout, tls } => {
                let secure = if tls.is_some() { "s" } else { "" };
                write!(f, "redis{secure}")?;
                write_layout(f, layout, login, &mut query)?;
                tls.iter().for_each(|files| push_tls_parameters(files, &mut query));
            }
        }
        if query.is_empty() { Ok(()) } else { write!(f, "?{}", query.join("&")) }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn write_layout(
    f: &mut fmt::Formatter<'_>,
    layout: &Layout,
    address_login: &str,
    query: &mut Vec<String>,
) -> fmt::Result {
    match layout {
        Layout::Single { host_port, database } => {
            write!(f, "://{address_login}{host_port}/{database}")
        }
        Layout::Cluster { seeds } => write!(f, "+cluster://{address_login}{}", join(seeds)),
        Layout::Sentinel { sentinels, login, master, database } => {
            if let Some(Login { user, .. }) = login {
                query.extend(user.as_ref().map(|_| "sentinel_user=***".to_owned()));
                query.push("sentinel_password=***".to_owned());
            }
            let sentinels = join(sentinels);
            write!(f, "+sentinel://{address_login}{sentinels}/{master}/{database}")
        }
    }
}

/// Joins hosts and ports with commas.
fn join(host_ports: &[HostPort]) -> String {
    let host_ports: Vec<String> = host_ports.iter().map(ToString::to_string).collect();
    host_ports.join(",")
}

fn push_tls_parameters(files: &TlsFiles, query: &mut Vec<String>) {
    query.extend(files.ca.as_deref().map(|ca| format!("ca={}", escaped(ca))));
    if let Some(client) = &files.client {
        query.push(format!("cert={}", escaped(&client.certificate)));
        query.push(format!("key={}", escaped(&client.key)));
    }
    query.extend(files.server_name.as_ref().map(|name| format!("server_name={}", name.to_str())));
}

fn escaped(path: &Path) -> String {
    Escaped(&path.to_string_lossy()).to_string()
}
