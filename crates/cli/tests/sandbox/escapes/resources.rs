//! Ways to use up more than was given.

use super::env::EscapeEnv;
use super::row::Sign::{Host, Says};
use super::row::{Row, bash, python};

pub(super) const ROWS: &[Row] = &[
    python(
        "many processes",
        Says,
        "
children = []
try:
    for _ in range(300):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        children.append(child)
    print('OPEN')
except OSError as error:
    print(error)
for child in children:
    os.kill(child, 9)
",
    ),
    python(
        "many threads",
        Says,
        "
import threading
over = threading.Event()
try:
    for _ in range(300):
        threading.Thread(target=over.wait, daemon=True).start()
    print('OPEN')
except RuntimeError as error:
    print(error)
over.set()
",
    ),
    python(
        "many descriptors",
        Says,
        "
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for limit in (80000, most):
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, max(limit, most)))
        break
    except (OSError, ValueError):
        pass
try:
    for _ in range(70000):
        os.dup(0)
    print('OPEN')
except OSError as error:
    print(error)
",
    ),
    python(
        "much memory",
        Says,
        "
try:
    much = bytearray(600 << 20)
    much[::4096] = b'x' * len(much[::4096])
    print('OPEN')
except MemoryError:
    print('refused')
",
    ),
    bash("a large file", Host(large), "head -c 9000000 /dev/zero > large"),
];

fn large(escape_env: &EscapeEnv) -> bool {
    escape_env.env.path("project/large").metadata().is_ok_and(|file| file.len() > 8 << 20)
}
