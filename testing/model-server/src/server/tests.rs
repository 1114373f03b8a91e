//! The server over a bare socket, without any client's HTTP library in between.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ModelServer;
use crate::{Call, Script, Step, ToolResult};

/// Sends one request as it is and returns everything that comes back.
fn send(server: &ModelServer, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address(server)).unwrap();
    let length = body.len();
    write!(stream, "{head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn post(server: &ModelServer, path: &str, body: &Value) -> String {
    send(server, &format!("POST {path} HTTP/1.1\r\nHost: model"), &body.to_string())
}

/// The JSON document of an answer.
fn document(answer: &str) -> Value {
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

/// The events of a streamed answer.
fn events(answer: &str) -> Vec<Value> {
    assert!(answer.contains("text/event-stream"), "{answer}");
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn address(server: &ModelServer) -> String {
    server.url().strip_prefix("http://").unwrap().to_owned()
}

/// A history that opens with `opening` and holds one assistant turn per result.
fn history(opening: &str, results: &[&str]) -> Value {
    let mut messages = vec![json!({"role": "user", "content": opening})];
    for result in results {
        let block = json!({"type": "tool_result", "content": [{"type": "text", "text": result}]});
        messages.push(json!({"role": "assistant", "content": []}));
        messages.push(json!({"role": "user", "content": [block]}));
    }
    json!({"model": "m", "tools": [{"name": "Read"}], "messages": messages})
}

#[test]
fn a_reply_is_one_document_by_default() {
    let server = ModelServer::start(Script::new([Step::calls([
        Call::new("Read", json!({"file_path": "/a"})),
        Call::new("Read", json!({"file_path": "/b"})),
    ])]));

    let message = document(&post(&server, "/v1/messages?beta=true", &history("go", &[])));

    assert_eq!(message["model"], "m");
    assert_eq!(message["stop_reason"], "tool_use");
    assert_eq!(message["content"][0]["input"], json!({"file_path": "/a"}));
    assert_ne!(message["content"][0]["id"], message["content"][1]["id"]);
    let requests = server.requests();
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/v1/messages"));
}

#[test]
fn a_reply_can_be_streamed() {
    let server = ModelServer::start(Script::new([
        Step::call("Bash", json!({"command": "true"})),
        Step::text("grüße"),
    ]));
    let ask = |results: &[&str]| {
        let mut body = history("go", results);
        body["stream"] = json!(true);
        events(&post(&server, "/v1/messages", &body))
    };

    let (call, text) = (ask(&[]), ask(&["ok"]));

    let kinds: Vec<&str> = call.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    assert_eq!(call[1]["content_block"]["name"], "Bash");
    assert_eq!(call[2]["delta"]["partial_json"], r#"{"command":"true"}"#);
    assert_eq!(call[4]["delta"]["stop_reason"], "tool_use");
    assert_eq!(text[2]["delta"]["text"], "grüße");
    assert_eq!(text[4]["delta"]["stop_reason"], "end_turn");
    assert_ne!(call[0]["message"]["id"], text[0]["message"]["id"]);
}

#[test]
fn the_step_depends_on_the_history_alone() {
    let server = ModelServer::start(
        Script::new([
            Step::text("first"),
            Step::from_result(|text| Step::text(format!("after {text}"))),
        ])
        .conversation("you are a helper", [Step::text("helping")])
        .closing("the end"),
    );
    let say =
        |body: &Value| document(&post(&server, "/v1/messages", body))["content"][0]["text"].clone();

    assert_eq!(say(&history("go", &["one"])), "after one");
    assert_eq!(say(&history("go", &[])), "first");
    assert_eq!(say(&history("go", &[])), "first");
    assert_eq!(say(&history("Now you are a helper.", &[])), "helping");
    assert_eq!(say(&history("go", &["one", "two"])), "the end");

    assert_eq!(server.tool_results(), [ok("one"), ok("two")]);
    assert_eq!(server.tool_results_of("you are a helper"), []);
}

#[test]
fn a_side_call_gets_the_closing_text() {
    let server = ModelServer::start(Script::new([Step::text("first")]).closing("a title"));
    let mut body = history("go", &["one", "two", "three"]);
    body["tools"] = json!([]);

    let message = document(&post(&server, "/v1/messages", &body));

    assert_eq!(message["content"][0]["text"], "a title");
    assert_eq!(server.tool_results(), []);
}

#[test]
fn tokens_are_counted_and_other_paths_are_unknown() {
    let server = ModelServer::start(Script::new([]));

    let count = document(&post(&server, "/v1/messages/count_tokens", &history("go", &[])));

    assert!(count["input_tokens"].is_u64(), "{count}");
    assert!(post(&server, "/v1/other", &json!({})).starts_with("HTTP/1.1 404 "));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_canary_is_seen_wherever_it_is_in_a_body() {
    let server = ModelServer::start(Script::new([]));
    post(&server, "/v1/other", &json!({"deep": [{"key \"quoted\"": "line\nbreak"}], "n": 4711}));
    send(&server, "POST /v1/messages HTTP/1.1\r\nHost: model", "no JSON at all");

    for canary in ["line\nbreak", "\"quoted\"", "4711", "no JSON"] {
        assert!(server.saw(canary), "{canary}");
    }
    assert!(!server.saw("absent"));
}

#[test]
#[should_panic(expected = "nothing is proved")]
fn a_body_that_cannot_be_read_proves_nothing() {
    let server = ModelServer::start(Script::new([]));
    let head = "POST /v1/messages HTTP/1.1\r\nHost: model\r\nContent-Encoding: gzip";
    assert!(send(&server, head, "…").starts_with("HTTP/1.1 415 "));
    server.saw("canary");
}

#[test]
fn connections_to_anywhere_else_are_refused() {
    let server = ModelServer::start(Script::new([]));

    let tunnel = "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443";
    assert!(send(&server, tunnel, "").starts_with("HTTP/1.1 403 "));
    let plain = "POST http://example.com/v1/messages?key=k HTTP/1.1\r\nHost: example.com";
    assert!(send(&server, plain, "{}").starts_with("HTTP/1.1 403 "));

    let refused = ["api.example.com:443", "http://example.com/v1/messages"];
    assert_eq!(server.refused_connections(), refused);
    assert_eq!(server.requests(), []);
}

#[test]
fn credentials_are_not_kept() {
    let server = ModelServer::start(Script::new([]));
    let head = "POST /v1/messages?key=k-111 HTTP/1.1\r\nHost: model\r\nAuthorization: Bearer k-222";
    send(&server, head, "{}");

    let kept = format!("{:?}", server.requests());
    assert!(!kept.contains("k-111") && !kept.contains("k-222"), "{kept}");
}

#[test]
fn a_dropped_server_is_gone() {
    let server = ModelServer::start(Script::new([]));
    let address = address(&server);
    post(&server, "/v1/messages", &history("go", &[]));
    drop(server);
    let end = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(&address).is_ok() {
        assert!(Instant::now() < end, "the port is still open");
        thread::sleep(Duration::from_millis(10));
    }
}

fn ok(text: &str) -> ToolResult {
    ToolResult { is_error: false, text: text.into() }
}
