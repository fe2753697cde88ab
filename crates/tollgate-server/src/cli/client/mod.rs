//! HTTP client for a running service.

mod events;
mod first_byte;
mod stream;
mod url;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::cli::ServerArgs;
use crate::cli::variable::variable_of;
use crate::error::SettingsError;
use crate::tls::{ClientTls, ClientTlsFiles};
pub(crate) use events::Event;
use first_byte::FirstByteStream;
pub(crate) use stream::{EventStream, FollowReply};
use url::{Scheme, Url};

/// Default timeout of a request, including the response body.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why a request has no response.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// Invalid input: the URL, a TLS file or the token.
    Usage(String),
    /// The service did not respond.
    NoAnswer(String),
}

impl From<SettingsError> for ClientError {
    fn from(error: SettingsError) -> Self {
        Self::Usage(error.to_string())
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Address of a service and how to connect to it.
#[derive(Debug)]
pub(crate) struct Server {
    /// `host:port`.
    authority: String,
    /// TLS connector; none for plain HTTP.
    tls: Option<ClientTls>,
    timeout: Duration,
}

impl Server {
    /// Returns the service that the arguments select. The TLS files are read only for `https`, because the
    /// environment may set them for all services.
    pub(crate) fn from_args(args: &ServerArgs) -> Result<Self, ClientError> {
        let url = Url::parse(&args.server).map_err(|reason| {
            let variable = variable_of::<ServerArgs>("server");
            let source = variable.unwrap_or_else(|| "--server".to_owned());
            ClientError::Usage(format!("{source}: {reason}"))
        })?;
        let tls = match url.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(ClientTls::new(&url.host, &tls_files(args)?)?),
        };
        Ok(Self { authority: format!("{}:{}", url.host, url.port), tls, timeout: DEFAULT_TIMEOUT })
    }

    /// Replaces the timeout of requests.
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sends a request with an optional JSON body and returns the status and the body of the response.
    pub(crate) async fn send(
        &self,
        method: Method,
        path_and_query: &str,
        body: Option<String>,
        token: Option<&str>,
    ) -> Result<(u16, String), ClientError> {
        let request = self.request(method, path_and_query, body, token)?;
        self.within_timeout(async {
            let response = self.exchange(request).await?;
            let status = response.status().as_u16();
            let bytes = response.into_body().collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&bytes).into_owned();
            self.ensure_plain(status, &body)?;
            Ok((status, body))
        })
        .await
    }

    async fn within_timeout<T>(
        &self,
        response: impl Future<Output = Result<T, AnyError>>,
    ) -> Result<T, ClientError> {
        match timeout(self.timeout, response).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(ClientError::NoAnswer(error.to_string())),
            Err(_) => {
                let seconds = self.timeout.as_secs();
                Err(ClientError::NoAnswer(format!("timed out after {seconds} s")))
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path_and_query: &str,
        body: Option<String>,
        token: Option<&str>,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request = Request::builder().method(method).uri(path_and_query);
        request = request.header(HOST, &self.authority).header(ACCEPT, JSON);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, JSON);
        }
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, bearer(token)?);
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        request.body(body).map_err(|error| ClientError::Usage(error.to_string()))
    }

    /// Connects, sends a request and returns the head of the response; the caller reads the body.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, AnyError> {
        let socket = TcpStream::connect(&self.authority).await?;
        match &self.tls {
            None => {
                let (stream, first) = FirstByteStream::new(socket);
                send(stream, request).await.map_err(|error| match first.is_tls_alert() {
                    true => self.speaks_tls(),
                    false => error,
                })
            }
            Some(tls) => {
                let stream = tls.handshake(socket).await?;
                send(stream, request).await.map_err(|error| tls.explain(error))
            }
        }
    }
}

impl Server {
    /// Returns an error if the response to a plain request says that the port requires TLS.
    fn ensure_plain(&self, status: u16, body: &str) -> Result<(), AnyError> {
        // The second text is that of nginx.
        let is_refused = body.contains("requires HTTPS") || body.contains("sent to HTTPS port");
        match self.tls.is_none() && status == 400 && is_refused {
            true => Err(self.speaks_tls()),
            false => Ok(()),
        }
    }

    fn speaks_tls(&self) -> AnyError {
        format!("the server speaks TLS; use https://{}", self.authority).into()
    }
}

fn tls_files(args: &ServerArgs) -> Result<ClientTlsFiles, ClientError> {
    let (ca, certificate, key) = (&args.ca, &args.client_cert, &args.client_key);
    Ok(ClientTlsFiles::new(ca.clone(), certificate.clone(), key.clone())?)
}

/// Returns the `Authorization` header. Neither the header nor an error shows the token.
fn bearer(token: &str) -> Result<HeaderValue, ClientError> {
    let invalid = |_| {
        ClientError::Usage(
            "the token contains characters that HTTP headers do not allow".to_owned(),
        )
    };
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(invalid)?;
    value.set_sensitive(true);
    Ok(value)
}

async fn send<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, AnyError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    match sender.send_request(request).await {
        Ok(response) => Ok(response),
        // If the connection failed before the request was sent, only the connection has the cause.
        Err(error) => match connection.await {
            Ok(Err(cause)) => Err(cause.into()),
            _ => Err(error.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server { authority: "localhost:1".to_owned(), tls: None, timeout: DEFAULT_TIMEOUT }
    }

    #[test]
    fn sends_token_without_showing_it() {
        let body = Some("{}".to_owned());
        let request = server().request(Method::PUT, "/admin?a=b", body, Some("hunter2")).unwrap();
        assert_eq!(
            (request.method(), request.uri().to_string()),
            (&Method::PUT, "/admin?a=b".into())
        );
        assert_eq!(request.headers()[AUTHORIZATION], "Bearer hunter2");
        assert_eq!(request.headers()[CONTENT_TYPE], JSON);
        assert!(!format!("{request:?}").contains("hunter2"));
        let error = server().request(Method::GET, "/", None, Some("hunter2\n")).unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }

    #[test]
    fn omits_headers_of_absent_token_and_body() {
        let request = server().request(Method::GET, "/", None, None).unwrap();
        let headers = request.headers();
        assert!(!headers.contains_key(AUTHORIZATION) && !headers.contains_key(CONTENT_TYPE));
    }
}
