"""Exit codes. They are part of the interface: a code never changes its meaning."""

DONE = 0
USAGE = 2
REFUSED = 3
EXISTS = 4
CLAIM_FAILED = 5
ALARM = 6
INTERNAL = 70
INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143

IN_WORDS = {
    DONE: "done (warnings, if any, are on stderr)",
    USAGE: "the command line was not understood",
    REFUSED: "an input was rejected, or a file cannot be read or written",
    EXISTS: "the output already exists; --force replaces it if it is of the same kind",
    CLAIM_FAILED: "a checked claim or a requested condition does not hold",
    ALARM: "a monitor raised its alarm: a result, not an error; its state was written",
    INTERNAL: "an internal error, please report it",
    INTERRUPTED: "interrupted",
    PIPE_CLOSED: "the reader of the output closed it",
    TERMINATED: "terminated",
}
