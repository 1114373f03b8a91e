"""The hook as a careful person would write it for Python: the standard library alone."""

import json
import os
import sys
import time

call = json.load(sys.stdin)
project = os.path.realpath(os.environ["CLAUDE_PROJECT_DIR"])
tool_input = call["tool_input"]

reason = None
if tool_input.get("dangerouslyDisableSandbox"):
    reason = "the sandbox stays on"
elif "file_path" in tool_input:
    named = os.path.join(call["cwd"], tool_input["file_path"])
    real = os.path.realpath(named)
    if real != project and not real.startswith(project + os.sep):
        reason = f"{named} is outside of {project}"

record = {
    "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    "session": call["session_id"],
    "tool": call["tool_name"],
    "input": tool_input,
    "verdict": "allow" if reason is None else "deny",
}
with open(os.environ["PEER_LOG"], "a") as log:
    log.write(json.dumps(record) + "\n")

if reason is not None:
    answer = {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }
    sys.stdout.write(json.dumps(answer))
