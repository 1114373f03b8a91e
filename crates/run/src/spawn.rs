//! [`spawn`]: a run in a supervisor process of its own, for programs with threads or many runs.
