# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_ringwall_global_optspecs
    string join \n h/help V/version
end

function __fish_ringwall_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_ringwall_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_ringwall_using_subcommand
    set -l cmd (__fish_ringwall_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c ringwall -n "__fish_ringwall_needs_command" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_needs_command" -s V -l version -d 'Print version'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "hook" -d 'Answers an agent\'s hook: a call on stdin, the decision on stdout'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "run" -d 'Runs a command behind a wall that the kernel holds'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "explain" -d 'Shows what would be decided about a call, and by which rule of which file'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "init" -d 'Detects agents, writes ringwall.toml, installs hooks, runs doctor'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "install" -d 'Puts the hook into an agent\'s settings'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "uninstall" -d 'Takes the hook out of an agent\'s settings again'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "doctor" -d 'Proves the wall from inside, and each installed hook by calling it'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "policy" -d 'Shows, checks or describes the configuration'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "grant" -d 'Adds an entry to the configuration, keeping comments and order'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "trust" -d 'Shows what a project\'s ringwall.toml widens, and trusts exactly its present content'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "audit" -d 'Shows and verifies the log of decisions'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "prompt" -d 'Prints the rules to put in front of an agent'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "try-acts" -d 'Tries forbidden acts from where it stands, for `doctor`'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "completions" -d 'Prints a completion script for a shell'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -l config -d 'A configuration file above all others; it is trusted' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -l workspace -d 'The directory the agent works in [default: where the agent was started]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -l phase -d 'The stage of work, as in [phases]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -l level -d 'The level: readonly, readwrite, network or full' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l agent -d 'The agent that is run [default: known by the program\'s name]' -r -f -a "claude\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l config -d 'A configuration file above all others; it is trusted' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l workspace -d 'The directory the agent works in [default: where the agent was started]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l phase -d 'The stage of work, as in [phases]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l level -d 'The level: readonly, readwrite, network or full' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l allow-read -d 'Let a path be read, for this run' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l allow-write -d 'Let a path be read and written, for this run' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l allow-domain -d 'Let a host be reached, for this run' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l events -d 'Write events as JSON lines to a file, or to an open descriptor as `fd:N`' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l enforcement -d 'Use no stronger wall than this, to see what a lesser machine gives' -r -f -a "namespaces\t'Namespaces and mounts, with Landlock and seccomp on top'
landlock\t'Landlock and seccomp alone'"
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l attribution -d 'Use no better attribution than this, to see what a lesser machine gives' -r -f -a "tripwire\t'A file system over what is denied'
notify\t'Every open is watched'
inferred\t'Nothing does'"
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l learn -d 'Go on after refusals, and print the configuration that would have allowed everything'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l plan -d 'Print the plan of the run instead of running'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l json -d 'Print the plan as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l yes -d 'Accept a workspace that holds your whole home directory'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l agent -d 'The agent whose call it is' -r -f -a "claude\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l config -d 'A configuration file above all others; it is trusted' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l workspace -d 'The directory the agent works in [default: where the agent was started]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l phase -d 'The stage of work, as in [phases]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l level -d 'The level: readonly, readwrite, network or full' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l json -d 'Print JSON: verdict, redirect, because, opaque'
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand init" -l scope -d 'The settings to install hooks in' -r -f -a "user\t'The user\'s own, for every project'
project\t'The project\'s shared file'
local\t'The project\'s private file'"
complete -c ringwall -n "__fish_ringwall_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand install" -l scope -d 'Which of the agent\'s settings files' -r -f -a "user\t'The user\'s own, for every project'
project\t'The project\'s shared file'
local\t'The project\'s private file'"
complete -c ringwall -n "__fish_ringwall_using_subcommand install" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand uninstall" -l scope -d 'Which of the agent\'s settings files' -r -f -a "user\t'The user\'s own, for every project'
project\t'The project\'s shared file'
local\t'The project\'s private file'"
complete -c ringwall -n "__fish_ringwall_using_subcommand uninstall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l config -d 'A configuration file above all others; it is trusted' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l workspace -d 'The directory the agent works in [default: where the agent was started]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l phase -d 'The stage of work, as in [phases]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l level -d 'The level: readonly, readwrite, network or full' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l json -d 'Print the checks as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -f -a "show" -d 'Prints every effective value with the file and line that set it'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -f -a "check" -d 'Reports errors, rules that match nothing, and lines that are not trusted'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -f -a "schema" -d 'Prints the JSON schema of ringwall.toml'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l config -d 'A configuration file above all others; it is trusted' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l workspace -d 'The directory the agent works in [default: where the agent was started]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l phase -d 'The stage of work, as in [phases]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l level -d 'The level: readonly, readwrite, network or full' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l config -d 'A configuration file above all others; it is trusted' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l workspace -d 'The directory the agent works in [default: where the agent was started]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l phase -d 'The stage of work, as in [phases]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l level -d 'The level: readonly, readwrite, network or full' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "show" -d 'Prints every effective value with the file and line that set it'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "check" -d 'Reports errors, rules that match nothing, and lines that are not trusted'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "schema" -d 'Prints the JSON schema of ringwall.toml'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write domain help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write domain help" -f -a "read" -d 'Lets the agent read a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write domain help" -f -a "write" -d 'Lets the agent read and write a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write domain help" -f -a "domain" -d 'Lets the agent reach a host: `example.org`, `*.example.org`, `example.org:8443`'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write domain help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from read" -l user -d 'Edit the user\'s file instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from read" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from write" -l user -d 'Edit the user\'s file instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from write" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from domain" -l user -d 'Edit the user\'s file instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from domain" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "read" -d 'Lets the agent read a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "write" -d 'Lets the agent read and write a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "domain" -d 'Lets the agent reach a host: `example.org`, `*.example.org`, `example.org:8443`'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand trust" -l yes -d 'Trust without asking'
complete -c ringwall -n "__fish_ringwall_using_subcommand trust" -l forget -d 'End the trust instead'
complete -c ringwall -n "__fish_ringwall_using_subcommand trust" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -f -a "tail" -d 'Prints the last records'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -f -a "query" -d 'Prints the records that match every condition'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -f -a "verify" -d 'Checks the chain of records from the first to the head'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from tail" -s n -l lines -d 'How many' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from tail" -l json -d 'Print the records as JSON lines'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from tail" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l verdict -d 'allow, ask or deny' -r -f -a "allow\t'Ran as it was'
ask\t'Needed consent'
deny\t'Was refused'"
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l agent -d 'The agent' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l session -d 'The agent\'s session' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l tool -d 'The tool' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l since -d 'Not before this time, such as 2026-11-15 or 2026-11-15T10:00:00Z' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l text -d 'A text that occurs in the record' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -s n -l last -d 'At most this many, the newest' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l json -d 'Print the records as JSON lines'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from verify" -l expect-head -d 'A head that was noted elsewhere: it must be in this log' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from verify" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "tail" -d 'Prints the last records'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "query" -d 'Prints the records that match every condition'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Checks the chain of records from the first to the head'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l agent -d 'The agent' -r -f -a "claude\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l config -d 'A configuration file above all others; it is trusted' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l workspace -d 'The directory the agent works in [default: where the agent was started]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l phase -d 'The stage of work, as in [phases]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l level -d 'The level: readonly, readwrite, network or full' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand try-acts" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand completions" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "hook" -d 'Answers an agent\'s hook: a call on stdin, the decision on stdout'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "run" -d 'Runs a command behind a wall that the kernel holds'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "explain" -d 'Shows what would be decided about a call, and by which rule of which file'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "init" -d 'Detects agents, writes ringwall.toml, installs hooks, runs doctor'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "install" -d 'Puts the hook into an agent\'s settings'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "uninstall" -d 'Takes the hook out of an agent\'s settings again'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "doctor" -d 'Proves the wall from inside, and each installed hook by calling it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "policy" -d 'Shows, checks or describes the configuration'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "grant" -d 'Adds an entry to the configuration, keeping comments and order'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "trust" -d 'Shows what a project\'s ringwall.toml widens, and trusts exactly its present content'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "audit" -d 'Shows and verifies the log of decisions'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "prompt" -d 'Prints the rules to put in front of an agent'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "try-acts" -d 'Tries forbidden acts from where it stands, for `doctor`'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "completions" -d 'Prints a completion script for a shell'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant trust audit prompt try-acts completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "show" -d 'Prints every effective value with the file and line that set it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "check" -d 'Reports errors, rules that match nothing, and lines that are not trusted'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "schema" -d 'Prints the JSON schema of ringwall.toml'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "read" -d 'Lets the agent read a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "write" -d 'Lets the agent read and write a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "domain" -d 'Lets the agent reach a host: `example.org`, `*.example.org`, `example.org:8443`'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "tail" -d 'Prints the last records'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "query" -d 'Prints the records that match every condition'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "verify" -d 'Checks the chain of records from the first to the head'
