//! The real client against the scripted model.

use std::fs;

use model_server::clients::ClaudeRun;
use model_server::{ModelServer, Script, Step};
use serde_json::json;

#[test]
fn a_scripted_session_reads_and_writes() {
    let project = tempfile::tempdir().unwrap();
    let (source, copy) = (project.path().join("source.txt"), project.path().join("copy.txt"));
    fs::write(&source, "canary-7f3a\n").unwrap();
    let server = ModelServer::start(Script::new([
        Step::call("Read", json!({"file_path": source})),
        Step::call("Write", json!({"file_path": copy, "content": "copied\n"})),
        Step::text("all done"),
    ]));

    let finished = ClaudeRun::new(&server, project.path()).run();

    assert!(finished.success(), "{finished:#?}");
    assert!(finished.stdout.contains("all done"), "{finished:#?}");
    let results = server.tool_results();
    assert_eq!(results.len(), 2, "{results:#?}");
    assert!(results[0].text.contains("canary-7f3a"), "{results:#?}");
    assert!(results.iter().all(|result| !result.is_error), "{results:#?}");
    assert!(server.saw("canary-7f3a"));
    assert_eq!(fs::read_to_string(&copy).unwrap(), "copied\n");
    assert_eq!(server.refused_connections(), Vec::<String>::new());
}
