//! The HTTP side: one loopback port that is the model, and a proxy that refuses everything.

use std::io::Cursor;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};
use tiny_http::{Header, Method, Response, Server};

use crate::api::{self, Api, Ask, ToolResult};
use crate::log::{Log, Request};
use crate::script::Script;

/// Enough that a few subagents get their answers side by side.
const WORKERS: usize = 4;

/// A model that follows a script, on a loopback port of its own. Dropping it ends its threads and
/// closes the port.
///
/// The same address serves as `HTTPS_PROXY` and `HTTP_PROXY` of the agent under test: what would
/// leave the machine is answered with 403 and listed in [`ModelServer::refused_connections`].
pub struct ModelServer {
    http: Arc<Server>,
    session: Arc<Session>,
    workers: Vec<JoinHandle<()>>,
}

/// What the worker threads share.
struct Session {
    script: Script,
    log: Mutex<Log>,
}

type Answer = Response<Cursor<Vec<u8>>>;

impl ModelServer {
    /// Listens on a free loopback port and answers by `script`.
    ///
    /// # Panics
    /// If no port can be opened.
    pub fn start(script: Script) -> Self {
        let http = Server::http((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
        let http = Arc::new(http);
        let session = Arc::new(Session { script, log: Mutex::default() });
        let work = || {
            let (http, session) = (Arc::clone(&http), Arc::clone(&session));
            thread::spawn(move || http.incoming_requests().for_each(|it| session.serve(it)))
        };
        let workers = (0..WORKERS).map(|_| work()).collect();
        Self { http, session, workers }
    }

    /// The base URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.http.server_addr())
    }

    /// Every request so far, oldest first, without the refused connections.
    pub fn requests(&self) -> Vec<Request> {
        self.session.log().requests.clone()
    }

    /// The tool results that the main conversation brought back: those of its longest history.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        self.session.log().main_results(&self.session.script)
    }

    /// The same for the conversation whose first user message contains `opening`.
    pub fn tool_results_of(&self, opening: &str) -> Vec<ToolResult> {
        self.session.log().results_of(opening)
    }

    /// Whether `text` occurs anywhere in any request body: the proof that a canary did, or did not,
    /// reach the model.
    ///
    /// Looks for the text as it is, within one JSON string. An agent that encodes what it read, as
    /// images and PDF files are, or cuts it in two, is not seen through.
    ///
    /// # Panics
    /// If a body was compressed or cut short, since then nothing can be proved.
    pub fn saw(&self, text: &str) -> bool {
        self.session.log().saw(text)
    }

    /// The targets of all connections that were refused, such as `api.example.com:443`.
    pub fn refused_connections(&self) -> Vec<String> {
        self.session.log().refused.clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // Each call wakes one worker.
        self.workers.iter().for_each(|_| self.http.unblock());
        for worker in self.workers.drain(..) {
            // A worker that panicked has said so already; a second panic here would abort.
            let _ = worker.join();
        }
    }
}

impl Session {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().expect("no worker panics while it holds the log")
    }

    fn serve(&self, mut request: tiny_http::Request) {
        let answer = self.answer(&mut request);
        // The agent may have gone away; that is its own affair.
        let _ = request.respond(answer);
    }

    fn answer(&self, request: &mut tiny_http::Request) -> Answer {
        if *request.method() == Method::Connect || !request.url().starts_with('/') {
            let target = without_query(request.url()).to_owned();
            self.log().refused.push(target);
            return refusal(403, "the model server opens no connections");
        }
        let (method, path) = (request.method().clone(), without_query(request.url()).to_owned());
        let Some(body) = read_body(request) else {
            self.log().unreadable += 1;
            return refusal(415, "the body is cut short or encoded");
        };
        self.log().requests.push(Request {
            method: method.to_string(),
            path: path.clone(),
            body: body.clone(),
        });
        match (method, api::route(&path)) {
            (Method::Post, Some((api, Ask::Reply))) => self.reply(api, &path, &body),
            (Method::Post, Some((api, Ask::TokenCount))) => document(&(api.token_count)()),
            (Method::Head, _) => document(&Value::Null),
            _ => refusal(404, "the model server knows no such path"),
        }
    }

    fn reply(&self, api: &Api, path: &str, body: &Value) -> Answer {
        let history = (api.decode)(path, body);
        let reply = self.script.reply(&history);
        let answer = if history.streaming {
            typed("text/event-stream", (api.stream)(&reply, &history))
        } else {
            document(&(api.encode)(&reply, &history))
        };
        self.log().histories.push(history);
        answer
    }
}

/// The body as JSON, or as a string where it is none.
///
/// `None` for a body that [`ModelServer::saw`] could not look into, such as a compressed one.
fn read_body(request: &mut tiny_http::Request) -> Option<Value> {
    let is_encoded = |header: &Header| {
        header.field.equiv("content-encoding") && header.value.as_str() != "identity"
    };
    if request.headers().iter().any(is_encoded) {
        return None;
    }
    let mut bytes = Vec::new();
    request.as_reader().read_to_end(&mut bytes).ok()?;
    if bytes.is_empty() {
        return Some(Value::Null);
    }
    let text = |_| Value::from(String::from_utf8_lossy(&bytes).into_owned());
    Some(serde_json::from_slice(&bytes).unwrap_or_else(text))
}

fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(path, _)| path)
}

fn refusal(status: u16, why: &str) -> Answer {
    let error =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": why}});
    document(&error).with_status_code(status)
}

fn document(body: &Value) -> Answer {
    typed("application/json", body.to_string())
}

fn typed(content_type: &str, body: String) -> Answer {
    let header = Header::from_bytes("content-type", content_type).expect("a valid header");
    Response::from_data(body).with_header(header)
}

#[cfg(test)]
mod tests;
