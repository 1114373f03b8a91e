// The hook as a careful person would write it for node: no packages, nothing asynchronous.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const call = JSON.parse(fs.readFileSync(0, 'utf8'));
const project = fs.realpathSync(process.env.CLAUDE_PROJECT_DIR);
const input = call.tool_input;

let reason = null;
if (input.dangerouslyDisableSandbox) {
  reason = 'the sandbox stays on';
} else if (input.file_path !== undefined) {
  const named = path.resolve(call.cwd, input.file_path);
  let real = null;
  try {
    real = fs.realpathSync(named);
  } catch {
    // A missing file cannot be followed, so it is not inside.
  }
  if (real !== project && !real?.startsWith(project + path.sep)) {
    reason = `${named} is outside of ${project}`;
  }
}

const record = {
  time: new Date().toISOString(),
  session: call.session_id,
  tool: call.tool_name,
  input,
  verdict: reason === null ? 'allow' : 'deny',
};
fs.appendFileSync(process.env.PEER_LOG, JSON.stringify(record) + '\n');

if (reason !== null) {
  const answer = {
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
      permissionDecisionReason: reason,
    },
  };
  fs.writeSync(1, JSON.stringify(answer));
}
