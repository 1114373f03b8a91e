//! Claude Code.
//!
//! Measured on 2.1.325: an answer must be one JSON document with `hookSpecificOutput` and the
//! event's own name in it, or it is ignored and the tool runs. `updatedInput` replaces the whole
//! input. Relative and `~` paths arrive absolute; links arrive as they are.

mod wire;

use model::{Access, Effect, OffSwitch, Presence, SettingsRules, Shape, Tool};

use crate::agent::{Agent, Caps, InRun, OwnFiles, SelfCheck, SettingsFiles};

pub(crate) const AGENT: Agent = Agent {
    name: "claude",
    title: "Claude Code",
    program: "claude",
    tools: TOOLS,
    caps: Caps { rewrite: true, ask: true },
    essential_domains: &["api.anthropic.com"],
    project_dir_variable: "CLAUDE_PROJECT_DIR",
    shell_marker: "CLAUDECODE",
    // Measured on 2.1.325, also which values make it ignore a whole file: nearly all of a wrong
    // type, at any depth. Keys that are not listed here cannot change while a session runs.
    settings_rules: SettingsRules {
        off_switches: &[OffSwitch { pointer: "/disableAllHooks", on: false }],
        off_variables: &["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"],
        location_variables: &[
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_TMPDIR",
            "CLAUDE_PROJECT_DIR",
            // What shells are started with and through; hooks without a shell do not mind.
            "CLAUDE_CODE_SHELL*",
        ],
        shapes: &[
            ("$schema", Shape::Text),
            ("model", Shape::Text),
            ("outputStyle", Shape::Text),
            ("alwaysThinkingEnabled", Shape::Switch),
            ("includeCoAuthoredBy", Shape::Switch),
            ("verbose", Shape::Switch),
            ("disableAllHooks", Shape::Switch),
            ("env", Shape::Variables),
            ("permissions", Shape::Lists(&["allow", "deny", "ask", "additionalDirectories"])),
            ("hooks", Shape::Hooks),
        ],
    },
    // Found by running 2.1.325 and reading what it asks the model to read. Other sessions, other
    // projects and transcripts stay closed.
    own_files: OwnFiles {
        in_config_dir: &[
            // A result too large for the conversation is stored, and the model is sent to read it.
            "projects/*/{session}/tool-results/**",
            "projects/*/{session}/workflows/scripts/**",
            "projects/{project}/memory/**",
            "plans/*.md",
            "skills/**",
        ],
        in_temp_dir: &[
            // Output of commands in the background.
            "claude-{uid}/*/{session}/tasks/*.output",
            "claude-{uid}/bundled-skills/**",
        ],
        temp_dir_variable: "CLAUDE_CODE_TMPDIR",
    },
    settings: SettingsFiles {
        config_dir: ".claude",
        config_dir_variable: "CLAUDE_CONFIG_DIR",
        user: "settings.json",
        project: ".claude/settings.json",
        local: ".claude/settings.local.json",
    },
    // Found by running 2.1.325 in the sandbox. It replaces its state file in the home directory by
    // renaming another one over it, which only its own directory allows; refreshed credentials must
    // not be lost, or the user is logged out.
    in_run: InRun {
        private: &[".claude"],
        kept: &[".claude/.credentials.json", ".claude/projects/{project}"],
        made: &[".claude/projects/{project}"],
        copied: &[(".claude.json", ".claude/.claude.json")],
        variables: &[
            "ANTHROPIC_*",
            "API_TIMEOUT_MS",
            "BASH_DEFAULT_TIMEOUT_MS",
            "BASH_MAX_TIMEOUT_MS",
            "CLAUDE_CODE_*",
            "DISABLE_*",
            "IS_SANDBOX",
            "MAX_THINKING_TOKENS",
            "MCP_TIMEOUT",
        ],
        set: &[
            ("CLAUDE_CONFIG_DIR", "{home}/.claude"),
            // What it sends besides the conversation goes to hosts that are not granted.
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
    },
    // What a session gets at its start does not reach its subagents, so both get the rules.
    hook_events: &[
        ("PreToolUse", Some("*")),
        ("ConfigChange", None),
        ("SessionStart", None),
        ("SubagentStart", None),
    ],
    self_check: Some(SelfCheck {
        args: &["doctor"],
        environment: &[
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            // Nothing listens there: whatever it wants to look up, it cannot.
            ("HTTP_PROXY", "http://127.0.0.1:9"),
            ("HTTPS_PROXY", "http://127.0.0.1:9"),
        ],
    }),
    exec_form_since: Some([2, 1, 197]),
    decode: wire::decode,
    encode: wire::encode,
    tell: wire::tell,
    env_file_variable: Some("CLAUDE_ENV_FILE"),
};

const fn path(field: &'static str, access: Access) -> Effect {
    Effect::Path { field, access, presence: Presence::Required }
}

const fn optional_path(field: &'static str, access: Access) -> Effect {
    Effect::Path { field, access, presence: Presence::Optional }
}

const fn tool(name: &'static str, effects: &'static [Effect]) -> Tool {
    Tool { name, effects }
}

/// Tools that are not listed are judged by the names of their fields.
const TOOLS: &[Tool] = &[
    tool("Read", &[path("file_path", Access::Read)]),
    tool("Write", &[path("file_path", Access::Write)]),
    tool("Edit", &[path("file_path", Access::Write)]),
    tool("MultiEdit", &[path("file_path", Access::Write)]),
    tool("NotebookRead", &[path("notebook_path", Access::Read)]),
    tool("NotebookEdit", &[path("notebook_path", Access::Write)]),
    tool(
        "Glob",
        &[
            optional_path("path", Access::Read),
            Effect::Glob { field: "pattern", base: "path", presence: Presence::Required },
        ],
    ),
    tool(
        "Grep",
        &[
            optional_path("path", Access::Read),
            Effect::Glob { field: "glob", base: "path", presence: Presence::Optional },
        ],
    ),
    tool("LS", &[optional_path("path", Access::Read)]),
    // Without a command there is nothing to run.
    tool("Bash", &[Effect::Command { field: "command", presence: Presence::Optional }]),
    // A second shell: it runs `command` and watches what that prints.
    tool("Monitor", &[Effect::Command { field: "command", presence: Presence::Optional }]),
    tool("WebFetch", &[Effect::Url { field: "url", presence: Presence::Required }]),
    tool("WebSearch", &[]),
    tool("AskUserQuestion", &[Effect::AskPerson]),
    // Changes the directory the agent works in; it must stay in the workspace.
    tool("EnterWorktree", &[optional_path("path", Access::Write)]),
    tool("ExitWorktree", &[]),
    tool("Workflow", &[optional_path("scriptPath", Access::Read)]),
    // Their own calls come through the hook one by one.
    tool("Agent", &[]),
    tool("Task", &[]),
    tool("Skill", &[]),
    tool("SendMessage", &[]),
    tool("TodoWrite", &[]),
    tool("TaskCreate", &[]),
    tool("TaskGet", &[]),
    tool("TaskList", &[]),
    tool("TaskUpdate", &[]),
    tool("TaskStop", &[]),
    tool("TaskOutput", &[]),
    tool("BashOutput", &[]),
    tool("KillShell", &[]),
    tool("ToolSearch", &[]),
    // Asks for consent to a plan; denying it would keep the agent in plan mode for ever.
    tool("ExitPlanMode", &[]),
    tool("EnterPlanMode", &[]),
    tool("CronCreate", &[]),
    tool("CronDelete", &[]),
    tool("CronList", &[]),
    tool("ScheduleWakeup", &[]),
    tool("ListMcpResources", &[]),
    tool("PushNotification", &[]),
    tool("ReportFindings", &[]),
    tool("StructuredOutput", &[]),
    tool("LSP", &[optional_path("filePath", Access::Read)]),
];
