"""The schema of the workspace's SQLite file, numbered; docs/workspace.md shows the same text."""

SCHEMA_VERSION = 7
# 1: the first.
# 2: coverage.
# 3: what verdicts saw and the rules that concluded them, interpreters; relations, candidates and crashes as rows, not as
#    text to be searched; ranks with its key first, as PRAGMA integrity_check wants it.
# 4: the document of a verdict holds only what no column does; older ones, which hold all, are read as they are.
# 5: what was found out about findings: reductions, blame; findings that are another's.
# 6: which line of a program calls an instance; what parameters default to.
# 7: no verdict is of no environment: `opera reduce` stored what a compiler showed that the workspace had not run.

APPLICATION_ID = 0x6F706572  # "oper"

SCHEMA = """
CREATE TABLE instances (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,  -- corpus order
    id TEXT NOT NULL UNIQUE,                -- content address of the document
    library TEXT NOT NULL,
    operator TEXT NOT NULL,
    document BLOB NOT NULL                  -- canonical JSON of opera.programs.program.Instance, zlib where that pays
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
CREATE TABLE expectations (                 -- what is expected of an instance: by its own test, else by who computed it
    instance TEXT PRIMARY KEY,
    document BLOB NOT NULL                  -- JSON: expected (or null), rtol, atol; reference, tags where there are any
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
CREATE TABLE crashes (                      -- calls that killed the library's process, or hung, at an extraction
    extraction TEXT NOT NULL,
    file TEXT NOT NULL,
    position INTEGER NOT NULL,              -- 0 is the first of the file
    operator TEXT NOT NULL,
    how TEXT NOT NULL,
    violates TEXT NOT NULL,                 -- the constraint that the input breaks; empty for one that conforms
    arguments BLOB NOT NULL,                -- JSON: name -> encoded value, zlib where that pays
    PRIMARY KEY (extraction, file, position),
    FOREIGN KEY (extraction, file) REFERENCES extraction_files ON DELETE CASCADE
);
CREATE TABLE candidates (                   -- what became of candidates for a relation: one is called as the other is
    extraction TEXT NOT NULL,
    file TEXT NOT NULL,
    source TEXT NOT NULL,                   -- operator whose invocations were tried
    target TEXT NOT NULL,                   -- operator that they were tried on
    document BLOB NOT NULL,                 -- JSON of opera.sources.deeprel.plans.Tried, zlib where that pays
    PRIMARY KEY (extraction, file, source, target),
    FOREIGN KEY (extraction, file) REFERENCES extraction_files ON DELETE CASCADE
);
CREATE INDEX candidates_source ON candidates (source);
CREATE INDEX candidates_target ON candidates (target);
CREATE TABLE relations (                    -- instances of two operators that agree in the library
    one TEXT NOT NULL,                      -- the instance that was made of the other
    other TEXT NOT NULL,
    kind TEXT NOT NULL,                     -- value (both return the same), status (both return)
    PRIMARY KEY (one, other, kind)
) WITHOUT ROWID;
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
    instance INTEGER NOT NULL,              -- instances.seq
    position INTEGER NOT NULL,              -- 0 is run first
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
CREATE TABLE interpreters (
    environment TEXT PRIMARY KEY,
    python TEXT NOT NULL,                   -- the interpreter that it was last run with
    seen REAL NOT NULL                      -- Unix seconds
);
CREATE TABLE findings (
    id TEXT PRIMARY KEY,                    -- of its signature
    signature BLOB NOT NULL,                -- JSON of opera.oracle.signature.Signature
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
    document BLOB NOT NULL,                 -- JSON: what else its outcome holds (opera.programs.verdicts)
    rules TEXT NOT NULL DEFAULT '',         -- digest of the rules that concluded it; empty: unknown
    seen BLOB,                              -- null, or what was observed (opera.programs.verdicts), zlib where that pays
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
    document BLOB NOT NULL,                 -- MessagePack: file -> line numbers as coverage.numbits, zlib where that pays
    PRIMARY KEY (frontend, environment, instance)
) WITHOUT ROWID;
CREATE TABLE examined (                     -- what was found out about a finding beside its verdicts
    finding TEXT NOT NULL,
    environment TEXT NOT NULL,
    kind TEXT NOT NULL,               -- reduction, plain, member, kin, numbers, blame, since, shown, gone; test, instance, made
    test TEXT NOT NULL,                     -- the member that was looked at; id of the test or instance
    document BLOB NOT NULL,                 -- JSON of Reduction, Membership, Kin, Blame or Since (opera.triage), zlib
    PRIMARY KEY (finding, environment, kind, test)
) WITHOUT ROWID;
CREATE TABLE aliases (                      -- findings that turned out to be another one
    finding TEXT PRIMARY KEY,
    kept TEXT NOT NULL                      -- the older one, whose id stays
) WITHOUT ROWID;
CREATE TABLE sites (                        -- lines of programs that call an instance (opera record)
    instance TEXT NOT NULL,
    extraction TEXT NOT NULL,               -- of the program that was run
    file TEXT NOT NULL,                     -- absolute path
    line INTEGER NOT NULL,
    module TEXT NOT NULL,                   -- path of the module or layer; empty outside of one
    text TEXT NOT NULL,                     -- the line as it was when it ran
    PRIMARY KEY (instance, extraction, file, line, module)
) WITHOUT ROWID;
CREATE TABLE defaults (                     -- what an operator's parameters default to: asking takes the whole library
    library TEXT NOT NULL,
    exporter TEXT NOT NULL,                 -- id of what makes the tests of that library: its version among others
    operator TEXT NOT NULL,
    document BLOB NOT NULL,                 -- JSON: parameter -> encoded value; null: the library has no such operator
    PRIMARY KEY (library, exporter, operator)
) WITHOUT ROWID;
"""

# What follows is frozen: the text of a step, once published, stays as it is whatever becomes of SCHEMA.

_RELATIONS_OF_2 = """
SELECT instance AS one, substr(test, instr(test, ': ') + 2) AS other, substr(test, 1, instr(test, ': ') - 1) AS kind
FROM main.provenances
WHERE source = 'deeprel' AND file LIKE '% -> %' AND (test GLOB 'value: *' OR test GLOB 'status: *')
"""
"""Version 2 told relations in the words of provenances."""
_CANDIDATES_OF_2 = """
SELECT f.extraction AS extraction, f.file AS file, json_extract(o.value, '$.pair.source') AS source,
    json_extract(o.value, '$.pair.target') AS target, CAST(o.value AS BLOB) AS document
FROM main.extraction_files f, json_each(CAST(f.document AS TEXT), '$.outcomes') o
WHERE f.file GLOB 'verify *'
"""
_CRASHES_OF_2 = """
SELECT f.extraction AS extraction, f.file AS file, c.key AS position, json_extract(c.value, '$.operator') AS operator,
    json_extract(c.value, '$.how') AS how, coalesce(json_extract(c.value, '$.violates'), '') AS violates,
    CAST(json_extract(c.value, '$.values') AS BLOB) AS arguments
FROM main.extraction_files f, json_each(CAST(f.document AS TEXT), '$.crashes') c
"""
"""Version 2 held both among what else was said of a file."""

MIGRATIONS = {
    1: """
CREATE TABLE coverage (
    frontend TEXT NOT NULL,
    environment TEXT NOT NULL,
    instance TEXT NOT NULL,
    seconds REAL NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (frontend, environment, instance)
) WITHOUT ROWID;
""",
    2: f"""
CREATE TABLE crashes (
    extraction TEXT NOT NULL,
    file TEXT NOT NULL,
    position INTEGER NOT NULL,
    operator TEXT NOT NULL,
    how TEXT NOT NULL,
    violates TEXT NOT NULL,
    arguments BLOB NOT NULL,
    PRIMARY KEY (extraction, file, position),
    FOREIGN KEY (extraction, file) REFERENCES extraction_files ON DELETE CASCADE
);
INSERT INTO crashes (extraction, file, position, operator, how, violates, arguments) {_CRASHES_OF_2};
CREATE TABLE candidates (
    extraction TEXT NOT NULL,
    file TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (extraction, file, source, target),
    FOREIGN KEY (extraction, file) REFERENCES extraction_files ON DELETE CASCADE
);
CREATE INDEX candidates_source ON candidates (source);
CREATE INDEX candidates_target ON candidates (target);
INSERT OR REPLACE INTO candidates (extraction, file, source, target, document) {_CANDIDATES_OF_2};
CREATE TABLE relations (
    one TEXT NOT NULL,
    other TEXT NOT NULL,
    kind TEXT NOT NULL,
    PRIMARY KEY (one, other, kind)
) WITHOUT ROWID;
INSERT OR IGNORE INTO relations (one, other, kind) {_RELATIONS_OF_2};
ALTER TABLE ranks RENAME TO ranks_of_2;
CREATE TABLE ranks (
    ranking INTEGER NOT NULL REFERENCES rankings ON DELETE CASCADE,
    instance INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (ranking, instance)
) WITHOUT ROWID;
INSERT INTO ranks (ranking, instance, position) SELECT ranking, instance, position FROM ranks_of_2;
DROP TABLE ranks_of_2;
CREATE TABLE interpreters (
    environment TEXT PRIMARY KEY,
    python TEXT NOT NULL,
    seen REAL NOT NULL
);
ALTER TABLE verdicts RENAME TO verdicts_of_2;
CREATE TABLE verdicts (
    test TEXT NOT NULL,
    frontend TEXT NOT NULL,
    variant TEXT NOT NULL,
    environment TEXT NOT NULL,
    verdict TEXT NOT NULL,
    stage TEXT NOT NULL,
    symptom TEXT NOT NULL,
    finding TEXT NOT NULL,
    confirmation TEXT NOT NULL,
    seconds REAL NOT NULL,
    run INTEGER NOT NULL,
    document BLOB NOT NULL,
    rules TEXT NOT NULL DEFAULT '',
    seen BLOB,
    PRIMARY KEY (test, frontend, variant, environment)
);
INSERT INTO verdicts (rowid, test, frontend, variant, environment, verdict, stage, symptom, finding, confirmation,
    seconds, run, document)
SELECT rowid, test, frontend, variant, environment, verdict, stage, symptom, finding, confirmation,
    seconds, run, document FROM verdicts_of_2 ORDER BY rowid;
DROP TABLE verdicts_of_2;
CREATE INDEX verdicts_finding ON verdicts (finding, environment);
CREATE INDEX verdicts_frontend ON verdicts (frontend, environment, verdict);
""",
    3: "",
    4: """
CREATE TABLE examined (
    finding TEXT NOT NULL,
    environment TEXT NOT NULL,
    kind TEXT NOT NULL,
    test TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (finding, environment, kind, test)
) WITHOUT ROWID;
CREATE TABLE aliases (
    finding TEXT PRIMARY KEY,
    kept TEXT NOT NULL
) WITHOUT ROWID;
""",
    5: """
CREATE TABLE sites (
    instance TEXT NOT NULL,
    extraction TEXT NOT NULL,
    file TEXT NOT NULL,
    line INTEGER NOT NULL,
    module TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (instance, extraction, file, line, module)
) WITHOUT ROWID;
CREATE TABLE defaults (
    library TEXT NOT NULL,
    exporter TEXT NOT NULL,
    operator TEXT NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (library, exporter, operator)
) WITHOUT ROWID;
""",
    6: "DELETE FROM verdicts WHERE environment = '';",
}
"""Version → what makes a workspace of it one of the next version."""

VIEWS = {
    1: """
CREATE TEMP VIEW coverage AS
SELECT '' AS frontend, '' AS environment, '' AS instance, 0.0 AS seconds, x'' AS document WHERE 0;
""",
    2: f"""
CREATE TEMP VIEW crashes AS {_CRASHES_OF_2};
CREATE TEMP VIEW candidates AS {_CANDIDATES_OF_2};
CREATE TEMP VIEW relations AS {_RELATIONS_OF_2};
CREATE TEMP VIEW interpreters AS SELECT '' AS environment, '' AS python, 0.0 AS seen WHERE 0;
CREATE TEMP VIEW verdicts AS SELECT rowid, *, '' AS rules, NULL AS seen FROM main.verdicts;
""",
    3: "",
    4: """
CREATE TEMP VIEW examined AS
SELECT '' AS finding, '' AS environment, '' AS kind, '' AS test, x'' AS document WHERE 0;
CREATE TEMP VIEW aliases AS SELECT '' AS finding, '' AS kept WHERE 0;
""",
    5: """
CREATE TEMP VIEW sites AS
SELECT '' AS instance, '' AS extraction, '' AS file, 0 AS line, '' AS module, '' AS text WHERE 0;
CREATE TEMP VIEW defaults AS SELECT '' AS library, '' AS exporter, '' AS operator, x'' AS document WHERE 0;
""",
    6: "CREATE TEMP VIEW IF NOT EXISTS verdicts AS SELECT rowid, * FROM main.verdicts WHERE environment != '';",
}
"""Version → views, of one connection, in which it looks like the next version: for who only reads, and may not migrate."""
