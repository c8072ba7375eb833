"""The workspace: one SQLite file, folders of migrated tests and reproducers. Only the parent process writes it.

`results/opera.sqlite` (WAL), `results/tests/` (opera.programs.migrated), `results/reproducers/`, `results/lock`.
Everything is content-addressed, so writing twice writes once, and an interrupted command only leaves work undone.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations, count
from pathlib import Path
from typing import Any

import msgspec

from opera.errors import WorkspaceError
from opera.programs.program import Captured, Program, Provenance, identity, operators_of, parse
from opera.programs.verdicts import FAILURES, PASS, SCREENED, UNEXPORTED, UNSUPPORTED
from opera.store import database
from opera.store.database import explained
from opera.store.folders import TESTS, Folders
from opera.store.rows import READ, WRITTEN, Covered, Crash, Test, Verdict, columns, pack, unpack, verdict

REPRODUCERS = "reproducers"
"""The folder of a workspace that holds the scripts of findings."""
DATABASE = "opera.sqlite"
"""The file of a workspace that holds the stored facts."""
COMBINED = (*FAILURES, "error", "flaky", SCREENED, PASS, UNSUPPORTED, UNEXPORTED)
"""A test's verdict on a frontend is the first of these that one of its variants has."""


COUNTED = "finding != '' AND (verdict != 'timeout' OR confirmation = 'confirmed')"
"""SQL: the verdicts that make findings. A time-out that no fresh process confirmed says little."""


IN_CORPUS = "EXISTS (SELECT 1 FROM provenances p WHERE p.instance = i.id)"
"""SQL that is true of the instances i that are in the corpus: others a compiler's own suite covers, or `opera reduce` made."""
EQUIPPED = "EXISTS (SELECT 1 FROM equipped e WHERE e.instance = i.id)"
"""SQL that is true of those that a compiler's own suite covers."""


class Workspace:
    """An open workspace. Use `Workspace.open(root, write=...)` as a context manager."""

    def __init__(self, root: Path, connection: sqlite3.Connection, lock: int | None) -> None:
        self.root = root
        self.tests_folder = root / TESTS
        self.outputs_folder = root / "outputs"
        self.files = Folders.of(root)
        self._db = connection
        self._lock = lock

    # ------------------------------------------------------------------ opening

    @classmethod
    def open(cls, root: Path, *, write: bool, make: bool = True) -> Workspace:
        """Open the workspace in `root`; for writing it is locked, and made where it is not there, unless `make` is false."""
        root = Path(root)
        lock = None
        try:
            if root.is_file():
                raise WorkspaceError(f"the workspace {root} is a file", fix="give --workspace a folder")
            if write and (make or (root / DATABASE).is_file()):
                root.mkdir(parents=True, exist_ok=True)
                lock = database.lock(root)
            elif not (root / DATABASE).is_file():
                raise WorkspaceError(
                    f"there is no workspace in {root}",
                    cause="nothing was extracted yet, or --workspace names another folder",
                    fix="run `opera extract onnx` first, or give --workspace",
                )
            connection = database.connect(root / DATABASE, write=write)
        except OSError as error:
            raise WorkspaceError(
                f"the workspace {root} cannot be {'written' if write else 'read'}: {error.strerror}",
                cause="a read-only or full file system, or missing rights",
                fix="give --workspace a folder that you may write",
            ) from None
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise
        return cls(root, connection, lock)

    def close(self) -> None:
        """Close the database and release the lock."""
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing; what SQLite says of a full disk or a damaged file becomes a WorkspaceError."""
        with explained(self.root):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is of one moment, whatever a run stores meanwhile."""
        with explained(self.root):
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("ROLLBACK")

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""
        with explained(self.root):
            return self._db.execute(sql, parameters).fetchall()

    def write(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run one statement, inside a transaction of the caller's."""
        self._db.execute(sql, parameters)

    def state(self) -> tuple[int, int]:
        """Return what is another once anything may have been stored, by this process or by others."""
        return self._db.total_changes, self.query("PRAGMA data_version")[0][0]

    def stream(self, sql: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query one by one."""
        with explained(self.root):
            yield from self._db.execute(sql, parameters)

    # ------------------------------------------------------------------ instances

    def add_captured(self, records: Iterable[Captured], *, equipped: str = "") -> int:
        """Store instances with where they were seen, all or none; return how many are new.

        With `equipped`, they are what that compiler's own suite covers and do not become tests themselves.
        """
        with self.transaction():
            return self.insert(records, equipped=equipped)

    def insert(self, records: Iterable[Captured], *, equipped: str = "", canonical: bytes | None = None) -> int:
        """As `add_captured`, inside a transaction of the caller's; `canonical` is the form of all their programs, if known."""
        new = 0
        for record in records:
            form = record.program.canonical() if canonical is None else canonical
            name = identity(form)
            cursor = self._db.execute(
                "INSERT OR IGNORE INTO instances (id, library, operator, document) VALUES (?, ?, ?, ?)",
                (name, record.program.library, record.program.operator, pack(form)),
            )
            new += cursor.rowcount
            at = (name, record.provenance.source, record.provenance.file, record.provenance.test)
            if equipped:
                self._db.execute("INSERT OR IGNORE INTO equipped VALUES (?, ?, ?, ?, ?)", (equipped, *at))
            else:
                self._db.execute("INSERT OR IGNORE INTO provenances VALUES (?, ?, ?, ?)", at)
            self._expect(name, record)
        return new

    def _expect(self, name: str, record: Captured) -> None:
        """Store what is expected of an instance: what a test states outweighs what was computed, else the first one stays."""
        if record.expected is None and not record.tags:
            return
        form = record.form()
        document = {key: form[key] for key in ("expected", "rtol", "atol", "reference", "tags") if key in form}
        row = (name, pack(msgspec.json.encode(document)))
        known = self.query("SELECT document FROM expectations WHERE instance = ?", (name,)) if record.stated else []
        if known:
            held = msgspec.json.decode(unpack(known[0][0]))
            if held["expected"] is None or held.get("reference"):
                self._db.execute("UPDATE expectations SET document = ?2 WHERE instance = ?1", row)
        else:
            self._db.execute("INSERT OR IGNORE INTO expectations VALUES (?, ?)", row)

    def relate(self, one: str, other: str, kind: str) -> None:
        """Store that the instance `one`, made of `other`, agrees with it in the library, inside a caller's transaction."""
        self._db.execute("INSERT OR IGNORE INTO relations (one, other, kind) VALUES (?, ?, ?)", (one, other, kind))

    def documents(self, library: str, *, equipped: str = "") -> Iterator[tuple[int, str, bytes, bytes | None]]:
        """Yield (seq, id, instance document, expectation document or None) in corpus order.

        The corpus of tests by default; with `equipped`, what that compiler's own suite covers.
        """
        member = "equipped WHERE compiler = ?" if equipped else "provenances"
        rows = self.stream(
            "SELECT i.seq, i.id, i.document, e.document FROM instances i LEFT JOIN expectations e ON e.instance = i.id"
            f" WHERE i.library = ? AND i.id IN (SELECT instance FROM {member}) ORDER BY i.seq",
            (library, equipped) if equipped else (library,),
        )
        for seq, name, document, expectation in rows:
            yield seq, name, unpack(document), None if expectation is None else unpack(expectation)

    def instance(self, name: str) -> Program:
        """Return an instance, or a program of several calls, by id: of the corpus, or made of a finding (store.examined)."""
        rows = self.query(
            "SELECT document FROM instances WHERE id = ?"
            " UNION ALL SELECT document FROM examined WHERE kind = 'instance' AND test = ?",
            (name, name),
        )
        if not rows:
            raise WorkspaceError(f"there is no instance {name}", fix="`opera report` lists what the workspace holds")
        return parse(unpack(rows[0][0]))

    def captured_form(self, name: str) -> dict[str, Any]:
        """Return the corpus form (docs/corpus.md) of one instance with its first provenance."""
        document, expectation = self.query(
            "SELECT i.document, e.document FROM instances i LEFT JOIN expectations e ON e.instance = i.id"
            " WHERE i.id = ?",
            (name,),
        )[0]
        provenance = self.provenances(name)[0]
        form = {"instance": msgspec.json.decode(unpack(document)), "provenance": msgspec.to_builtins(provenance)}
        rest = {} if expectation is None else msgspec.json.decode(unpack(expectation))
        return form | {"expected": None, "rtol": None, "atol": None} | rest

    def provenances(self, name: str) -> list[Provenance]:
        """Return where an instance was seen."""
        rows = self.query("SELECT source, file, test FROM provenances WHERE instance = ? ORDER BY rowid", (name,))
        return [Provenance(*row) for row in rows]

    def libraries(self) -> list[str]:
        """Return the libraries that the corpus holds instances of."""
        rows = self.query(  # one instance of each is enough, however many there are
            "SELECT library FROM (SELECT DISTINCT library FROM instances) l WHERE EXISTS"
            f" (SELECT 1 FROM instances i WHERE i.library = l.library AND {IN_CORPUS}) ORDER BY 1"
        )
        return [row[0] for row in rows]

    def operators(self, library: str) -> set[str]:
        """Return the operators that the corpus holds instances of."""
        rows = self.query(
            "SELECT operator FROM (SELECT DISTINCT operator FROM instances WHERE library = ?1) o WHERE EXISTS"
            f" (SELECT 1 FROM instances i WHERE i.library = ?1 AND i.operator = o.operator AND {IN_CORPUS})",
            (library,),
        )
        return {name for row in rows for name in operators_of(row[0])}

    # ------------------------------------------------------------------ extractions

    def extraction(self, key: str, document: dict[str, Any]) -> set[str]:
        """Begin or go on with an extraction; return the files that an earlier one finished."""
        with self.transaction():
            self._db.execute(
                "INSERT OR IGNORE INTO extractions (key, started, document) VALUES (?, ?, ?)",
                (key, time.time(), msgspec.json.encode(document)),
            )
        rows = self.query("SELECT file FROM extraction_files WHERE extraction = ? AND status = 'done'", (key,))
        return {row[0] for row in rows}

    def forget_extraction(self, key: str) -> None:
        """Make the next extraction of the same target begin anew (instances stay)."""
        with self.transaction():
            self._db.execute("DELETE FROM extraction_files WHERE extraction = ?", (key,))

    def save_extraction_file(
        self,
        key: str,
        file: str,
        status: str,
        document: dict[str, Any],
        *,
        instead_of: str = "",
        crashes: Iterable[Crash] = (),
        candidates: Iterable[tuple[str, str, object]] = (),
    ) -> None:
        """Store how one file of a suite went, in place of those whose name begins with `instead_of`.

        Args:
            key, file, status, document: See opera.store.schema.
            instead_of: Files of which nothing is kept; empty for none but `file`.
            crashes: Calls that killed the library's process, or hung.
            candidates: (source, target, opera.sources.deeprel.plans.Tried) of candidates for a relation.
        """
        with self.transaction():
            if instead_of:
                self._db.execute(
                    "DELETE FROM extraction_files WHERE extraction = ? AND substr(file, 1, ?) = ?",
                    (key, len(instead_of), instead_of),
                )
            self._db.execute(
                "INSERT OR REPLACE INTO extraction_files VALUES (?, ?, ?, ?)",
                (key, file, status, msgspec.json.encode(document)),
            )
            self._db.executemany(
                "INSERT INTO crashes (extraction, file, position, operator, how, violates, arguments)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    (key, file, place, x.operator, x.how, x.violates, pack(msgspec.json.encode(x.values)))
                    for place, x in enumerate(crashes)
                ),
            )
            self._db.executemany(  # a list of candidates may name one twice
                "INSERT OR REPLACE INTO candidates (extraction, file, source, target, document) VALUES (?, ?, ?, ?, ?)",
                ((key, file, source, target, pack(msgspec.json.encode(x))) for source, target, x in candidates),
            )

    def crashes(self) -> Iterator[Crash]:
        """Yield the calls that killed a library's process, or hung, at any extraction."""
        for operator, how, violates, arguments in self.stream(
            "SELECT operator, how, violates, arguments FROM crashes ORDER BY file, extraction, position"
        ):
            yield Crash(how, operator, msgspec.json.decode(unpack(arguments)), violates)

    # ------------------------------------------------------------------ rankings

    def save_ranking(
        self,
        library: str,
        compiler: str,
        strategy: str,
        document: dict[str, Any],
        order: Sequence[int],
        same_as: str = "",
    ) -> None:
        """Store an order of instances (by seq); it replaces the earlier ranking of the same library and compiler.

        `same_as` is another compiler for which this very order was stored just before.
        """
        with self.transaction():
            self._db.execute("DELETE FROM rankings WHERE library = ? AND compiler = ?", (library, compiler))
            cursor = self._db.execute(
                "INSERT INTO rankings (library, compiler, strategy, created, document) VALUES (?, ?, ?, ?, ?)",
                (library, compiler, strategy, time.time(), msgspec.json.encode(document)),
            )
            if same_as:
                self._db.execute(
                    "INSERT INTO ranks (ranking, instance, position) SELECT ?, instance, position FROM ranks"
                    " WHERE ranking = (SELECT id FROM rankings WHERE library = ? AND compiler = ?) ORDER BY instance",
                    (cursor.lastrowid, library, same_as),
                )
                return
            self._db.executemany(
                "INSERT INTO ranks (ranking, instance, position) VALUES (?, ?, ?)",
                # In the order of the key, so that a million rows are appended and not put into place one by one.
                ((cursor.lastrowid, seq, position) for seq, position in sorted(zip(order, count(), strict=False))),
            )

    def ranking(
        self, library: str, compiler: str, corpus: dict[int, tuple[str, str]] | None = None
    ) -> tuple[str, list[tuple[str, str]], int]:
        """Return (strategy or "", [(instance id, operator)] best first, how many at the end are unranked).

        `corpus` is what `corpus()` returned, for whoever asks for several rankings.
        """
        corpus = self.corpus(library) if corpus is None else corpus
        found = self.query("SELECT id, strategy FROM rankings WHERE library = ? AND compiler = ?", (library, compiler))
        ranking, strategy = found[0] if found else (None, "")
        rows = self.stream("SELECT instance FROM ranks WHERE ranking = ? ORDER BY position", (ranking,))
        order = [row[0] for row in rows]
        ranked = [corpus[seq] for seq in order if seq in corpus]
        if len(ranked) == len(corpus):
            return strategy, ranked, 0
        known = set(order)
        rest = [instance for seq, instance in corpus.items() if seq not in known]
        return strategy, ranked + rest, len(rest)

    def corpus(self, library: str) -> dict[int, tuple[str, str]]:
        """Return seq → (instance id, operator) of a library's instances, in corpus order."""
        rows = self.stream(
            f"SELECT i.seq, i.id, i.operator FROM instances i WHERE i.library = ? AND {IN_CORPUS} ORDER BY i.seq",
            (library,),
        )
        # There are a thousand times as many instances as operators: each name is held once.
        return {seq: (name, sys.intern(operator)) for seq, name, operator in rows}

    # ------------------------------------------------------------------ tests and verdicts

    def save_tests(self, exporter: str, tests: Iterable[Test]) -> None:
        """Store migrated tests, or why an instance has none, made by the exporter of that id."""
        with self.transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO tests VALUES (?, ?, ?, ?, ?, ?)",
                ((t.id, t.instance, exporter, t.status, t.reason, t.seconds) for t in tests),
            )

    def tests(self, exporter: str) -> dict[str, Test]:
        """Return instance id → test, for one exporter."""
        rows = self.query("SELECT id, instance, status, reason, seconds FROM tests WHERE exporter = ?", (exporter,))
        return {row[1]: Test(*row) for row in rows}

    def save_environment(self, document: dict[str, Any]) -> str:
        """Store what a verdict depends on beside the test; return its id."""
        canonical = msgspec.json.encode(document, order="sorted")
        name = identity(canonical)[:12]
        with self.transaction():
            self._db.execute("INSERT OR IGNORE INTO environments VALUES (?, ?)", (name, canonical))
        return name

    def save_interpreter(self, environment: str, python: str) -> None:
        """Store with which interpreter an environment was last run: probing one of its findings needs that one."""
        with self.transaction():
            self._db.execute("INSERT OR REPLACE INTO interpreters VALUES (?, ?, ?)", (environment, python, time.time()))

    def interpreter(self, environment: str) -> str:
        """Return the interpreter that an environment was last run with; empty for the one that runs opera."""
        found = self.query("SELECT python FROM interpreters WHERE environment = ?", (environment,))
        return str(found[0][0]) if found else ""

    def environments(self) -> dict[str, dict[str, Any]]:
        """Return id → document of all environments."""
        return {row[0]: msgspec.json.decode(row[1]) for row in self.query("SELECT id, document FROM environments")}

    def superseded(self) -> set[str]:
        """Return the environments that a later run replaced: the same but for how tests are made and judged.

        Nor is an environment another because the later one states more options: an adapter that states what it once left to
        the compiler is the same compiler. One that states other values, or fewer options, is another.
        """
        alike: dict[bytes, dict[str, dict[str, Any]]] = defaultdict(dict)
        for name, document in self.environments().items():
            same = {key: value for key, value in document.items() if key not in ("exporter", "oracle", "options")}
            alike[msgspec.json.encode(same, order="sorted")][name] = document.get("options", {})
        groups = [group for group in alike.values() if len(group) > 1]
        if not groups:  # all verdicts would be read to tell which run was last
            return set()
        last = dict(self.query("SELECT environment, MAX(run) FROM verdicts GROUP BY 1"))
        found = set()
        for group in groups:
            ordered = sorted(group, key=lambda name: (last.get(name, -1), len(group[name]), name))
            found |= {old for old, new in combinations(ordered, 2) if group[old].items() <= group[new].items()}
        return found

    def save_verdicts(self, run: int, verdicts: Iterable[Verdict], signatures: dict[str, bytes]) -> None:
        """Store verdicts, each in place of an earlier one of the same identity, and the signatures of new findings."""
        with self.transaction():
            self._save_findings(signatures)
            self._db.executemany(
                # An upsert keeps the row's place: rowids tell in which order tests were first run.
                f"INSERT INTO verdicts ({', '.join(WRITTEN)}) VALUES ({', '.join('?' * len(WRITTEN))})"
                " ON CONFLICT (test, frontend, variant, environment) DO UPDATE SET verdict = excluded.verdict,"
                " stage = excluded.stage, symptom = excluded.symptom, finding = excluded.finding,"
                " confirmation = excluded.confirmation, seconds = excluded.seconds, run = excluded.run,"
                " document = excluded.document, rules = excluded.rules, seen = excluded.seen",
                (columns(verdict, run) for verdict in verdicts),
            )

    def move_verdicts(
        self, verdicts: Iterable[Verdict], signatures: dict[str, bytes], became: Mapping[str, str], stale: Iterable[str]
    ) -> None:
        """Store which findings failing verdicts belong to now, and drop the findings `stale`, which have none left.

        `became` says what stale findings are called now: documents about them go along, the time at which the first of them was
        found stays, and those with another name become aliases.
        """
        renamed = {old: new for old, new in became.items() if old != new}
        with self.transaction():
            created = dict(self._db.execute("SELECT id, created FROM findings"))
            self._db.executemany("DELETE FROM findings WHERE id = ?", ((name,) for name in stale))
            self._save_findings(signatures)
            self._db.executemany(
                "UPDATE findings SET created = min(created, ?) WHERE id = ?",
                ((created[old], new) for old, new in became.items() if old in created),
            )
            self._db.executemany(
                "UPDATE verdicts SET finding = ? WHERE test = ? AND frontend = ? AND variant = ? AND environment = ?",
                ((v.finding, v.test, v.frontend, v.variant, v.environment) for v in verdicts),
            )
            self._db.executemany(
                "UPDATE OR REPLACE examined SET finding = ? WHERE finding = ?",
                ((new, old) for old, new in renamed.items()),
            )
            self._db.executemany("INSERT OR REPLACE INTO aliases (finding, kept) VALUES (?, ?)", renamed.items())
            self._db.executemany("DELETE FROM aliases WHERE finding = ?", ((name,) for name in signatures))

    def _save_findings(self, signatures: dict[str, bytes]) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO findings VALUES (?, ?, ?)",
            ((name, signature, time.time()) for name, signature in signatures.items()),
        )

    def verdicts(self, where: str = "1", parameters: Sequence[Any] = (), *, seen: bool = False) -> Iterator[Verdict]:
        """Yield stored verdicts in the order they were written; `where` is SQL over the columns of `verdicts`.

        With `seen`, they hold what they were concluded from.
        """
        rows = self.stream(f"SELECT {', '.join(READ)} FROM verdicts WHERE {where} ORDER BY rowid", parameters)
        return (verdict(row, seen=seen) for row in rows)

    def finding_ids(self) -> list[str]:
        """Return the findings in the order they were found."""
        return [
            row[0]
            for row in self.query(
                f"SELECT id FROM findings WHERE id IN (SELECT finding FROM verdicts WHERE {COUNTED}) ORDER BY rowid"
            )
        ]

    def drop_empty_findings(self) -> None:
        """Forget the findings that no verdict belongs to any more."""
        with self.transaction():
            self._db.execute("DELETE FROM findings WHERE id NOT IN (SELECT finding FROM verdicts)")

    def verdict_names(self, frontend: str, environment: str) -> dict[tuple[str, str], tuple[str, str]]:
        """Return (test, variant) → (verdict, stage) of one frontend in one environment."""
        rows = self.stream(
            "SELECT test, variant, verdict, stage FROM verdicts WHERE frontend = ? AND environment = ?",
            (frontend, environment),
        )
        pairs: dict[tuple[str, str], tuple[str, str]] = {}  # a dozen of them, in a million verdicts
        return {
            (test, sys.intern(variant)): pairs.setdefault((verdict, stage), (verdict, stage))
            for test, variant, verdict, stage in rows
        }

    # ------------------------------------------------------------------ coverage

    def save_coverage(self, frontend: str, environment: str, covered: Iterable[Covered]) -> None:
        """Store what tests cover of a frontend, each in place of what was stored."""
        with self.transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO coverage VALUES (?, ?, ?, ?, ?)",
                (
                    (frontend, environment, x.instance, x.seconds, pack(msgspec.msgpack.encode(x.files)))
                    for x in covered
                ),
            )

    def coverage(self, frontend: str, environment: str = "") -> dict[str, dict[str, bytes]]:
        """Return instance → file → bitmap of lines; without `environment`, of the one whose collection is the largest."""
        rows = self.stream(
            "SELECT instance, document FROM coverage WHERE frontend = ? AND environment = ?",
            (frontend, environment or self._covered_environment(frontend)),
        )
        return {instance: msgspec.msgpack.decode(unpack(document)) for instance, document in rows}

    def coverage_seconds(self, frontend: str, environment: str = "") -> float:
        """Return the seconds that collecting it has taken."""
        rows = self.query(
            "SELECT TOTAL(seconds) FROM coverage WHERE frontend = ? AND environment = ?",
            (frontend, environment or self._covered_environment(frontend)),
        )
        return float(rows[0][0])

    def _covered_environment(self, frontend: str) -> str:
        rows = self.query(
            "SELECT environment FROM coverage WHERE frontend = ? GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1", (frontend,)
        )
        return str(rows[0][0]) if rows else ""

    # ------------------------------------------------------------------ runs

    def start_run(self, document: dict[str, Any]) -> int:
        """Store that a run began; return its number."""
        with self.transaction():
            cursor = self._db.execute(
                "INSERT INTO runs (started, document) VALUES (?, ?)", (time.time(), msgspec.json.encode(document))
            )
        return int(cursor.lastrowid or 0)

    def save_run(self, run: int, frontends: dict[tuple[str, str], dict[str, float]], *, finished: bool) -> None:
        """Store the accounts of a run, (frontend, environment) → seconds by kind, so that a report mid-run has them."""
        with self.transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO run_frontends VALUES (?, ?, ?, ?)",
                ((run, *key, msgspec.json.encode(account)) for key, account in frontends.items()),
            )
            if finished:
                self._db.execute("UPDATE runs SET finished = ? WHERE id = ?", (time.time(), run))

    def accounts(self) -> dict[tuple[str, str], list[dict[str, float]]]:
        """Return (frontend, environment) → accounts of every run, oldest first."""
        found: dict[tuple[str, str], list[dict[str, float]]] = {}
        for frontend, environment, document in self.query(
            "SELECT frontend, environment, document FROM run_frontends ORDER BY run"
        ):
            found.setdefault((frontend, environment), []).append(msgspec.json.decode(document))
        return found
