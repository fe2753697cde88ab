//! ClientTls a running service.

mod events;
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
use crate::settings::SettingsError;
use crate::tls::{ClientTls, ClientTlsFiles};
pub(crate) use events::Event;
pub(crate) use stream::{EventStream, Followed};
use url::{Scheme, Url};

/// How long an answer is waited for, unless it takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    /// What was typed cannot be used: the URL, a file, a token.
    Usage(String),
    /// Nobody answered.
    NoAnswer(String),
}

impl From<SettingsError> for AskError {
    fn from(error: SettingsError) -> Self {
        Self::Usage(error.to_string())
    }
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// A service that can be asked.
#[derive(Debug)]
pub(crate) struct Server {
    /// `host:port`.
    authority: String,
    /// How TLS is agreed on; without it HTTP is plain.
    tls: Option<ClientTls>,
    patience: Duration,
}

impl Server {
    /// The service that the arguments name. Files for TLS are read if it is spoken: the environment may
    /// name them for all services.
    pub(crate) fn of(args: &ServerArgs) -> Result<Self, AskError> {
        let url = Url::parse(&args.server).map_err(AskError::Usage)?;
        let tls = match url.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(ClientTls::new(&url.host, &files_of(args)?)?),
        };
        Ok(Self { authority: format!("{}:{}", url.host, url.port), tls, patience: PATIENCE })
    }

    /// The same, for answers that take longer.
    pub(crate) fn patient(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Asks for a path; the status and the body of the answer. A body that is sent is JSON.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path_and_query: &str,
        body: Option<String>,
        token: Option<&str>,
    ) -> Result<(u16, String), AskError> {
        let request = self.request(method, path_and_query, body, token)?;
        self.patiently(async {
            let response = self.respond(request).await?;
            let status = response.status().as_u16();
            let bytes = response.into_body().collect().await?.to_bytes();
            Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
        })
        .await
    }

    async fn patiently<T>(
        &self,
        answer: impl Future<Output = Result<T, AnyError>>,
    ) -> Result<T, AskError> {
        match timeout(self.patience, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(AskError::NoAnswer(error.to_string())),
            Err(_) => {
                Err(AskError::NoAnswer(format!("nothing within {} s", self.patience.as_secs())))
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path_and_query: &str,
        body: Option<String>,
        token: Option<&str>,
    ) -> Result<Request<Full<Bytes>>, AskError> {
        let mut request = Request::builder().method(method).uri(path_and_query);
        request = request.header(HOST, &self.authority).header(ACCEPT, JSON);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, JSON);
        }
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, bearer(token)?);
        }
        let body = Full::new(Bytes::from(body.unwrap_or_default()));
        request.body(body).map_err(|error| AskError::Usage(error.to_string()))
    }

    /// The beginning of the answer; its body is read by who wants it.
    async fn respond(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, AnyError> {
        let socket = TcpStream::connect(&self.authority).await?;
        match &self.tls {
            None => send(socket, request).await,
            Some(tls) => {
                let stream = tls.handshake(socket).await?;
                send(stream, request).await.map_err(|error| tls.explain(error))
            }
        }
    }
}

fn files_of(args: &ServerArgs) -> Result<ClientTlsFiles, AskError> {
    let (ca, certificate, key) = (&args.ca, &args.client_cert, &args.client_key);
    Ok(ClientTlsFiles::of(ca.clone(), certificate.clone(), key.clone())?)
}

/// The header of a token, which nobody is shown, not even if it cannot be one.
fn bearer(token: &str) -> Result<HeaderValue, AskError> {
    let wrong = |_| AskError::Usage("the token holds characters that a header cannot".to_owned());
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(wrong)?;
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
        // A connection that broke before it was asked knows why; who asked only hears that it did.
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
        Server { authority: "localhost:1".to_owned(), tls: None, patience: PATIENCE }
    }

    #[test]
    fn a_token_is_sent_and_not_shown() {
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
    fn without_a_token_and_a_body_there_is_no_header_for_them() {
        let request = server().request(Method::GET, "/", None, None).unwrap();
        let headers = request.headers();
        assert!(!headers.contains_key(AUTHORIZATION) && !headers.contains_key(CONTENT_TYPE));
    }
}
