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
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "hook" -d 'Decide about an agent\'s tool call: the call on stdin, the decision on stdout'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "run" -d 'Run a command in the sandbox'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "explain" -d 'Show what the hook and the sandbox would do about a call, and by which rule'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "init" -d 'Set up a project: write ringwall.toml, install hooks, run doctor'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "install" -d 'Add the hook to an agent\'s settings'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "uninstall" -d 'Remove the hook from an agent\'s settings'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "doctor" -d 'Check that the sandbox and the installed hooks work, by trying them'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "policy" -d 'Show, check or describe the configuration'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "grant" -d 'Allow a path, a host, a port or a variable, by adding it to ringwall.toml'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "revoke" -d 'Take a grant back, by removing it from ringwall.toml'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "trust" -d 'Show what a project\'s ringwall.toml allows, and trust it'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "kept" -d 'Show what runs left under protected names, and take it over'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "audit" -d 'Show or verify the log of decisions'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "clean" -d 'Remove the private caches of runs'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "prompt" -d 'Print the rules of a session, for an agent to read'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "try-acts" -d 'Try forbidden actions in this process, for `doctor`'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c ringwall -n "__fish_ringwall_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -l config -d 'Use this configuration file on top of all others, and trust it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -l workspace -d 'The directory the agent works in [default: the project it was started in]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -l phase -d 'Apply a section of [phases] in the configuration' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -l level -d 'readonly: writes nothing; readwrite: writes the workspace, reaches allowed hosts; network: also every public host; full: also your home and the host\'s network [default: readwrite]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand hook" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l agent -d 'The agent that the command is [default: recognised by the name of the program]' -r -f -a "claude\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l config -d 'Use this configuration file on top of all others, and trust it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l workspace -d 'The directory the agent works in [default: the project it was started in]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l phase -d 'Apply a section of [phases] in the configuration' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l level -d 'readonly: writes nothing; readwrite: writes the workspace, reaches allowed hosts; network: also every public host; full: also your home and the host\'s network [default: readwrite]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l allow-read -d 'Allow reading a path, for this run only' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l allow-write -d 'Allow reading and writing a path, for this run only' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l allow-unix -d 'Allow connections to a Unix socket of the host, for this run only' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l publish -d 'Let programs of this machine reach a server inside, at a port of the loopback, or of ADDRESS' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l allow-domain -d 'Allow connections to a host, for this run only' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -s e -l env -d 'Pass an environment variable, or set it to a value, for this run only' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l on-violation -d 'What a violation does: stop the run, or only fail the call [default: stop; deny for a shell in which you type]' -r -f -a "stop\t''
deny\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l events -d 'Write events as JSON lines to a file or an open file descriptor' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l enforcement -d 'Limit the sandbox to this mechanism, to test what a less capable machine supports' -r -f -a "namespaces\t'Namespaces and mounts, with Landlock and seccomp on top'
landlock\t'Landlock and seccomp alone'"
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l attribution -d 'Limit how denied paths are found to this mechanism, to test a less capable machine' -r -f -a "tripwire\t'A FUSE file system is mounted over what is denied'
notify\t'Every open is intercepted with seccomp'
inferred\t'Denied paths are not reported'"
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l learn -d 'Do not stop at violations; at the end, print the configuration that would allow them'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l fresh -d 'Start with the host\'s caches alone, and delete what the run writes in them at its end'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l plan -d 'Print what the sandbox would allow, and run nothing'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l json -d 'Print the plan as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -l yes -d 'Accept the directory of --workspace although it contains your whole home directory'
complete -c ringwall -n "__fish_ringwall_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l agent -d 'The agent that would make the call' -r -f -a "claude\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l config -d 'Use this configuration file on top of all others, and trust it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l workspace -d 'The directory the agent works in [default: the project it was started in]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l phase -d 'Apply a section of [phases] in the configuration' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l level -d 'readonly: writes nothing; readwrite: writes the workspace, reaches allowed hosts; network: also every public host; full: also your home and the host\'s network [default: readwrite]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -l json -d 'Print JSON: verdict, redirect, because, opaque, sandbox'
complete -c ringwall -n "__fish_ringwall_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand init" -l scope -d 'Which of the agents\' settings files to add the hook to' -r -f -a "user\t'The user\'s file, for every project'
project\t'The project\'s file that is shared with others'
local\t'The project\'s file that is not shared'"
complete -c ringwall -n "__fish_ringwall_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand install" -l scope -d 'Which of the agent\'s settings files to change' -r -f -a "user\t'The user\'s file, for every project'
project\t'The project\'s file that is shared with others'
local\t'The project\'s file that is not shared'"
complete -c ringwall -n "__fish_ringwall_using_subcommand install" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand uninstall" -l scope -d 'Which of the agent\'s settings files to change' -r -f -a "user\t'The user\'s file, for every project'
project\t'The project\'s file that is shared with others'
local\t'The project\'s file that is not shared'"
complete -c ringwall -n "__fish_ringwall_using_subcommand uninstall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l config -d 'Use this configuration file on top of all others, and trust it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l workspace -d 'The directory the agent works in [default: the project it was started in]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l phase -d 'Apply a section of [phases] in the configuration' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l level -d 'readonly: writes nothing; readwrite: writes the workspace, reaches allowed hosts; network: also every public host; full: also your home and the host\'s network [default: readwrite]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -l json -d 'Print the checks as JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -f -a "show" -d 'Print every effective value with the file and line that set it'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -f -a "check" -d 'Report errors, rules that match nothing, and lines that are not trusted'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -f -a "schema" -d 'Print the JSON schema of ringwall.toml'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and not __fish_seen_subcommand_from show check schema help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l config -d 'Use this configuration file on top of all others, and trust it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l workspace -d 'The directory the agent works in [default: the project it was started in]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l phase -d 'Apply a section of [phases] in the configuration' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l level -d 'readonly: writes nothing; readwrite: writes the workspace, reaches allowed hosts; network: also every public host; full: also your home and the host\'s network [default: readwrite]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l config -d 'Use this configuration file on top of all others, and trust it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l workspace -d 'The directory the agent works in [default: the project it was started in]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l phase -d 'Apply a section of [phases] in the configuration' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l level -d 'readonly: writes nothing; readwrite: writes the workspace, reaches allowed hosts; network: also every public host; full: also your home and the host\'s network [default: readwrite]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print every effective value with the file and line that set it'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "check" -d 'Report errors, rules that match nothing, and lines that are not trusted'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "schema" -d 'Print the JSON schema of ringwall.toml'
complete -c ringwall -n "__fish_ringwall_using_subcommand policy; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -l list -d 'Print every grant, with the file and the line that it is in'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -l last -d 'Propose grants for what the last run in this workspace was denied'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -f -a "read" -d 'Allow reading a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -f -a "write" -d 'Allow reading and writing a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -f -a "unix" -d 'Allow connections to a Unix socket of the host'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -f -a "domain" -d 'Allow connections to a host: `example.org`, `*.example.org`, `example.org:8443`'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -f -a "env" -d 'Pass an environment variable into runs; a final `*` stands for any ending'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -f -a "port" -d 'Allow connections to a port of the host\'s loopback, such as a database'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and not __fish_seen_subcommand_from read write unix domain env port help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from read" -l yes -d 'Grant what gives away more than it seems to without asking'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from read" -l user -d 'Change the user\'s configuration instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from read" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from write" -l yes -d 'Grant what gives away more than it seems to without asking'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from write" -l user -d 'Change the user\'s configuration instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from write" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from unix" -l yes -d 'Grant a socket that gives more than files without asking'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from unix" -l user -d 'Change the user\'s configuration instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from unix" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from domain" -l user -d 'Change the user\'s configuration instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from domain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from env" -l user -d 'Change the user\'s configuration instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from env" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from port" -l user -d 'Change the user\'s configuration instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from port" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "read" -d 'Allow reading a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "write" -d 'Allow reading and writing a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "unix" -d 'Allow connections to a Unix socket of the host'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "domain" -d 'Allow connections to a host: `example.org`, `*.example.org`, `example.org:8443`'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "env" -d 'Pass an environment variable into runs; a final `*` stands for any ending'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "port" -d 'Allow connections to a port of the host\'s loopback, such as a database'
complete -c ringwall -n "__fish_ringwall_using_subcommand grant; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand revoke" -l user -d 'Change the user\'s configuration instead of the project\'s'
complete -c ringwall -n "__fish_ringwall_using_subcommand revoke" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand trust" -l yes -d 'Trust without asking'
complete -c ringwall -n "__fish_ringwall_using_subcommand trust" -l forget -d 'Stop trusting the file'
complete -c ringwall -n "__fish_ringwall_using_subcommand trust" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and not __fish_seen_subcommand_from list show take drop help" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and not __fish_seen_subcommand_from list show take drop help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and not __fish_seen_subcommand_from list show take drop help" -f -a "list" -d 'List what is kept (the same as no verb)'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and not __fish_seen_subcommand_from list show take drop help" -f -a "show" -d 'Print what kept files say'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and not __fish_seen_subcommand_from list show take drop help" -f -a "take" -d 'Put kept files where the run left them'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and not __fish_seen_subcommand_from list show take drop help" -f -a "drop" -d 'Delete kept files'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and not __fish_seen_subcommand_from list show take drop help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from take" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from drop" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from help" -f -a "list" -d 'List what is kept (the same as no verb)'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print what kept files say'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from help" -f -a "take" -d 'Put kept files where the run left them'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from help" -f -a "drop" -d 'Delete kept files'
complete -c ringwall -n "__fish_ringwall_using_subcommand kept; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -f -a "tail" -d 'Print the last records'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -f -a "query" -d 'Print the records that match every condition'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -f -a "verify" -d 'Check that no record was changed or removed'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and not __fish_seen_subcommand_from tail query verify help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from tail" -s n -l lines -d 'How many records' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from tail" -l json -d 'Print the records as JSON lines'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from tail" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l verdict -d 'Only records with this verdict' -r -f -a "allow\t'The call ran'
ask\t'The user was asked'
deny\t'The call was denied'"
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l agent -d 'Only records of this agent' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l session -d 'Only records of this session' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l tool -d 'Only records of this tool' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l since -d 'Only records since this time, such as 2026-11-15 or 2026-11-15T10:00:00Z' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l text -d 'Only records that contain this text' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -s n -l last -d 'Only the newest of the matching records, at most this many' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -l json -d 'Print the records as JSON lines'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from query" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from verify" -l expect-head -d 'A head that you noted earlier: it must be in this log' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from verify" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "tail" -d 'Print the last records'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "query" -d 'Print the records that match every condition'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Check that no record was changed or removed'
complete -c ringwall -n "__fish_ringwall_using_subcommand audit; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand clean" -l workspace -d 'The workspace [default: the one of this directory]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand clean" -l older-than -d 'Only what was not used for so long, such as `30d` or `12h`' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand clean" -l all -d 'Those of all workspaces'
complete -c ringwall -n "__fish_ringwall_using_subcommand clean" -l dry-run -d 'Print what would be removed, and remove nothing'
complete -c ringwall -n "__fish_ringwall_using_subcommand clean" -l json -d 'Print JSON'
complete -c ringwall -n "__fish_ringwall_using_subcommand clean" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l agent -d 'The agent' -r -f -a "claude\t''"
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l config -d 'Use this configuration file on top of all others, and trust it' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l workspace -d 'The directory the agent works in [default: the project it was started in]' -r -F
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l phase -d 'Apply a section of [phases] in the configuration' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -l level -d 'readonly: writes nothing; readwrite: writes the workspace, reaches allowed hosts; network: also every public host; full: also your home and the host\'s network [default: readwrite]' -r
complete -c ringwall -n "__fish_ringwall_using_subcommand prompt" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand try-acts" -s h -l help -d 'Print help'
complete -c ringwall -n "__fish_ringwall_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "hook" -d 'Decide about an agent\'s tool call: the call on stdin, the decision on stdout'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "run" -d 'Run a command in the sandbox'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "explain" -d 'Show what the hook and the sandbox would do about a call, and by which rule'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "init" -d 'Set up a project: write ringwall.toml, install hooks, run doctor'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "install" -d 'Add the hook to an agent\'s settings'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "uninstall" -d 'Remove the hook from an agent\'s settings'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "doctor" -d 'Check that the sandbox and the installed hooks work, by trying them'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "policy" -d 'Show, check or describe the configuration'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "grant" -d 'Allow a path, a host, a port or a variable, by adding it to ringwall.toml'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "revoke" -d 'Take a grant back, by removing it from ringwall.toml'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "trust" -d 'Show what a project\'s ringwall.toml allows, and trust it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "kept" -d 'Show what runs left under protected names, and take it over'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "audit" -d 'Show or verify the log of decisions'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "clean" -d 'Remove the private caches of runs'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "prompt" -d 'Print the rules of a session, for an agent to read'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "try-acts" -d 'Try forbidden actions in this process, for `doctor`'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "completions" -d 'Print a completion script for a shell'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and not __fish_seen_subcommand_from hook run explain init install uninstall doctor policy grant revoke trust kept audit clean prompt try-acts completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "show" -d 'Print every effective value with the file and line that set it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "check" -d 'Report errors, rules that match nothing, and lines that are not trusted'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from policy" -f -a "schema" -d 'Print the JSON schema of ringwall.toml'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "read" -d 'Allow reading a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "write" -d 'Allow reading and writing a path and everything below it'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "unix" -d 'Allow connections to a Unix socket of the host'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "domain" -d 'Allow connections to a host: `example.org`, `*.example.org`, `example.org:8443`'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "env" -d 'Pass an environment variable into runs; a final `*` stands for any ending'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from grant" -f -a "port" -d 'Allow connections to a port of the host\'s loopback, such as a database'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from kept" -f -a "list" -d 'List what is kept (the same as no verb)'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from kept" -f -a "show" -d 'Print what kept files say'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from kept" -f -a "take" -d 'Put kept files where the run left them'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from kept" -f -a "drop" -d 'Delete kept files'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "tail" -d 'Print the last records'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "query" -d 'Print the records that match every condition'
complete -c ringwall -n "__fish_ringwall_using_subcommand help; and __fish_seen_subcommand_from audit" -f -a "verify" -d 'Check that no record was changed or removed'
