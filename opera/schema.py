"""The schema of the workspace's SQLite file, numbered; docs/workspace.md shows the same text."""

SCHEMA_VERSION = 2
# 1: the first.
# 2: coverage.

APPLICATION_ID = 0x6F706572  # "oper"

SCHEMA = """
CREATE TABLE instances (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- corpus order
    id TEXT NOT NULL UNIQUE,                -- content address of the document
    library TEXT NOT NULL,
    operator TEXT NOT NULL,
    document BLOB NOT NULL                  -- canonical JSON of opera.instance.Instance, zlib where that pays
);
CREATE INDEX instances_library ON instances (library, operator);
CREATE TABLE provenances (                  -- where an instance was seen; these instances are the corpus
    instance TEXT NOT NULL,
    source TEXT NOT NULL,                   -- migration source
    file TEXT NOT NULL,
    test TEXT NOT NULL,
    UNIQUE (instance, source, file, test)
);
CREATE TABLE equipped (                     -- what a compiler's own suite covers
    compiler TEXT NOT NULL,
    instance TEXT NOT NULL,
    source TEXT NOT NULL,
    file TEXT NOT NULL,
    test TEXT NOT NULL,
    UNIQUE (compiler, instance, source, file, test)
);
CREATE TABLE expectations (                 -- what an instance's own test expects of it
    instance TEXT PRIMARY KEY,
    document BLOB NOT NULL                  -- JSON: expected, rtol, atol
);
CREATE TABLE extractions (
    key TEXT PRIMARY KEY,                   -- target + library version
    started REAL NOT NULL,                  -- Unix seconds
    document BLOB NOT NULL                  -- JSON: target, library, versions
);
CREATE TABLE extraction_files (
    extraction TEXT NOT NULL,
    file TEXT NOT NULL,
    status TEXT NOT NULL,                   -- done, failed-import, timeout, died, failed
    document BLOB NOT NULL,                 -- JSON: reason, tests, calls, instances, left_out, seconds
    PRIMARY KEY (extraction, file)
);
CREATE TABLE rankings (
    id INTEGER PRIMARY KEY,
    library TEXT NOT NULL,
    compiler TEXT NOT NULL,
    strategy TEXT NOT NULL,
    created REAL NOT NULL,
    document BLOB NOT NULL,                 -- JSON: seed, counts, seconds
    UNIQUE (library, compiler)
);
CREATE TABLE ranks (
    ranking INTEGER NOT NULL REFERENCES rankings ON DELETE CASCADE,
    position INTEGER NOT NULL,              -- 0 is run first
    instance INTEGER NOT NULL,              -- instances.seq
    PRIMARY KEY (ranking, instance)
) WITHOUT ROWID;
CREATE TABLE tests (                        -- migrated tests
    id TEXT PRIMARY KEY,                    -- content address: instance + exporter
    instance TEXT NOT NULL,
    exporter TEXT NOT NULL,
    status TEXT NOT NULL,                   -- valid, invalid (the library rejects it), error (opera failed)
    reason TEXT NOT NULL,
    seconds REAL NOT NULL                   -- time to make it
);
CREATE INDEX tests_exporter ON tests (exporter, instance);
CREATE TABLE environments (
    id TEXT PRIMARY KEY,
    document BLOB NOT NULL                  -- JSON: compiler, version, options, CPU features, oracle version, ...
);
CREATE TABLE findings (
    id TEXT PRIMARY KEY,                    -- of its signature
    signature BLOB NOT NULL,                -- JSON of opera.triage.signature.Signature
    created REAL NOT NULL
);
CREATE TABLE verdicts (
    test TEXT NOT NULL,
    frontend TEXT NOT NULL,
    variant TEXT NOT NULL,
    environment TEXT NOT NULL,
    verdict TEXT NOT NULL,
    stage TEXT NOT NULL,
    symptom TEXT NOT NULL,
    finding TEXT NOT NULL,                  -- empty where it is no failure
    confirmation TEXT NOT NULL,             -- pending, confirmed, unconfirmed, or empty
    seconds REAL NOT NULL,                  -- inside the compiler, first execution
    run INTEGER NOT NULL,
    document BLOB NOT NULL,                 -- JSON of opera.workspace.Verdict
    PRIMARY KEY (test, frontend, variant, environment)
);
CREATE INDEX verdicts_finding ON verdicts (finding, environment);
CREATE INDEX verdicts_frontend ON verdicts (frontend, environment, verdict);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    started REAL NOT NULL,
    finished REAL,                          -- null: running, or interrupted
    document BLOB NOT NULL                  -- JSON: options, workers
);
CREATE TABLE run_frontends (
    run INTEGER NOT NULL,
    frontend TEXT NOT NULL,
    environment TEXT NOT NULL,
    document BLOB NOT NULL,                 -- JSON: seconds, wall_seconds, workers, confirmation_seconds, ...
    PRIMARY KEY (run, frontend, environment)
);
CREATE TABLE coverage (                     -- statements of a frontend written in Python that a test covers
    frontend TEXT NOT NULL,
    environment TEXT NOT NULL,
    instance TEXT NOT NULL,
    seconds REAL NOT NULL,                  -- to collect it
    document BLOB NOT NULL,                 -- MessagePack: file -> bitmap of line numbers, zlib where that pays
    PRIMARY KEY (frontend, environment, instance)
) WITHOUT ROWID;
"""

MIGRATIONS = {1: SCHEMA[SCHEMA.index("CREATE TABLE coverage") :]}
"""Version → what makes a workspace of it one of the next version."""
