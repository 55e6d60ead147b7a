#!/usr/bin/env bats
# An SQLite store beside a plain client of the database: AG2's own statements in the sqlite3 shell.
load helper

setup() {
	clean_environment
	command -v sqlite3 >/dev/null || skip "no sqlite3 here"
	export AG2_STORE=sqlite:$TMP/x.db
	DB=$TMP/x.db
}

sql() {
	sqlite3 -batch -cmd '.timeout 5000' "$DB" "$@"
}

bytes() {
	od -An -v -tx1 | tr -d ' \n' | tr a-f A-F
}

@test "AG2's SELECT gives every byte of what was written and appended" {
	printf 'a\0b\377\376\0' | ag2-store write /odd
	printf '\303\0(\n' | ag2-store append /odd
	run sql "SELECT hex(content), typeof(content) FROM entries WHERE path='/odd'"
	output_is '610062FFFE00C300280A|blob'
	run sql "SELECT length(content) FROM entries WHERE path='/odd'"
	output_is 10
}

@test "AG2's INSERT OR REPLACE gives every byte, and what is appended to it follows" {
	ag2-store write /seed </dev/null
	sql "INSERT OR REPLACE INTO entries (path, content, version) VALUES('/new', x'00FF00C3', 1)"
	run bytes < <(ag2-store cat /new)
	output_is 00FF00C3
	run ag2-store append /new <<<more
	output_is 4
	run sql "SELECT hex(content) FROM entries WHERE path='/new'"
	output_is 00FF00C36D6F72650A
}

@test "AG2's CREATE TABLE IF NOT EXISTS changes nothing" {
	echo text | ag2-store write /a
	sql "CREATE TABLE IF NOT EXISTS entries (path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0)"
	run ag2-store cat /a
	output_is text
}

@test "AG2 lists by prefix, and deletes a file and what is below it" {
	for path in /d/a /d/b/c /d0 /x; do echo "$path" | ag2-store write $path; done
	run sql "SELECT path FROM entries WHERE substr(path, 1, 3) = '/d/' ORDER BY path"
	output_is $'/d/a\n/d/b/c'
	sql "DELETE FROM entries WHERE path = '/d'; DELETE FROM entries WHERE substr(path, 1, 3) = '/d/'"
	run ag2-store ls /
	output_is $'d0\nx'
	run sql "SELECT count(*) FROM segments"
	output_is 2
}

@test "names that are not UTF-8 are the same bytes for both" {
	printf 'text' | ag2-store write "$(printf '/n\377\376')"
	run sql "SELECT hex(path) FROM entries"
	output_is 2F6EFFFE
	sql "INSERT OR REPLACE INTO entries VALUES(CAST(x'2F6D80' AS TEXT), 'two', 1)"
	run ag2-store cat "$(printf '/m\200')"
	output_is two
}

@test "versions never fall, whatever version AG2 writes" {
	ag2-store write /a <<<1
	ag2-store write /a <<<2
	before=$(sql "SELECT MAX(version) FROM entries")
	sql "INSERT OR REPLACE INTO entries VALUES('/a', 'x', 1)"
	after=$(sql "SELECT COALESCE(MAX(version), 0) FROM entries")
	[ "$after" -gt "$before" ]
	sql "DELETE FROM entries WHERE path='/a'"
	ag2-store write /a <<<3
	[ "$(sql "SELECT version FROM entries WHERE path='/a'")" -gt "$after" ]
}

@test "a database that AG2 made is read as it is, and not changed by that" {
	cp "$GOLDEN/ag2.db" "$DB"
	run ag2-store ls /artifacts
	output_is $'SKILL.md\na b%c_d/\nempty.txt\nwal.log'
	run ag2-store cat '/artifacts/a b%c_d/é.txt' /artifacts/wal.log
	output_is $'oddone\ntwö'
	run ag2-store exists /memory
	status_is 0
	run ag2-store exists /none
	status_is 1
	same "$GOLDEN/ag2.db" "$DB"
	[ "$(ls "$TMP"/x.db*)" = "$DB" ]
}

@test "the first change to it keeps its content, versions and mode" {
	cp "$GOLDEN/ag2.db" "$DB"
	chmod 640 "$DB"
	sql "SELECT path, hex(content), version FROM entries ORDER BY path" >before
	run ag2-store append /artifacts/wal.log <<<three
	output_is 9
	sql "SELECT path, hex(content), version FROM entries ORDER BY path" >after
	run diff before after
	has '> /artifacts/wal.log|6F6E650A7477C3B60A74687265650A|17'
	[ "$(diff before after | grep -c '^[<>]')" -eq 2 ]
	[ "$(stat -c %a "$DB")" = 640 ]
	run sql "PRAGMA integrity_check"
	output_is ok
}

@test "a plain client that had it open before goes on after" {
	cp "$GOLDEN/ag2.db" "$DB"
	mkfifo in
	sqlite3 -batch "$DB" <in >out 2>&1 3>&- & pid=$!
	exec 5>in
	echo "SELECT count(*) FROM entries;" >&5
	wait_for 30 grep -q 14 out
	ag2-store append /artifacts/wal.log <<<three
	printf '%s\n' "INSERT OR REPLACE INTO entries VALUES('/by-ag2', 'x', 1);" \
		"SELECT hex(content) FROM entries WHERE path='/artifacts/wal.log';" >&5
	exec 5>&-
	wait "$pid"
	run cat out
	output_is $'14\n6F6E650A7477C3B60A74687265650A'
	run ag2-store cat /by-ag2
	output_is x
}

@test "a database that is held for a moment is waited for; held for long, it is 75 and nothing is written" {
	echo text | ag2-store write /a
	mkfifo in
	sqlite3 -batch "$DB" <in >out 2>&1 3>&- & pid=$!
	exec 5>in
	echo "BEGIN IMMEDIATE; SELECT 'held';" >&5
	wait_for 30 grep -q held out
	ag2-store -s "$AG2_STORE?timeout=60" write /a <<<new 5>&- & writer=$!
	echo "SELECT 'still'; COMMIT;" >&5
	wait $writer
	run ag2-store cat /a
	output_is new
	echo "BEGIN IMMEDIATE; SELECT 'again';" >&5
	wait_for 30 grep -q again out
	run ag2-store -s "$AG2_STORE?timeout=0.5" write /a <<<lost 5>&-
	status_is 75
	has 'held by another process'
	run ag2-store cat /a
	output_is new
	exec 5>&-
	wait "$pid"
}

@test "a writer killed in the middle of a transaction leaves what was before" {
	echo text | ag2-store write /a
	mkfifo in
	sqlite3 -batch "$DB" <in >out 2>&1 3>&- &
	pid=$!
	exec 5>in
	echo "BEGIN IMMEDIATE; UPDATE entries SET content = 'lost'; SELECT 'written';" >&5
	wait_for 30 grep -q written out
	kill -9 $pid
	exec 5>&-
	wait $pid || true
	run ag2-store cat /a
	output_is text
	ag2-store append /a <<<more
	run ag2-store cat /a
	output_is $'text\nmore'
}

@test "writers killed at any moment lose nothing that they reported" {
	ag2-store write /log </dev/null
	for i in 1 2 3 4 5 6 7 8 9 10; do
		(while echo "line of $i" | ag2-store append /log >>offsets.$i; do :; done) 3>&- &
		wait_for 60 test -s offsets.$i
		kill -9 $!
		wait $! 2>/dev/null || true
	done
	# The last program of each loop can still be at work: what it reports from now on is not counted.
	for i in 1 2 3 4 5 6 7 8 9 10; do
		wc -l <offsets.$i >reported.$i
	done
	ag2-store cat /log >log
	for i in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(grep -cx "line of $i" log)" -ge "$(cat reported.$i)" ]
	done
	[ "$(grep -cvx 'line of [0-9]*' log)" -eq 0 ]
	run sql "PRAGMA integrity_check"
	output_is ok
}

@test "the one file, copied after the end of a program, is the whole store" {
	head -c 300000 /dev/urandom >big
	ag2-store write /big big
	ag2-store append /big <<<end
	echo end >>big
	[ "$(ls "$TMP"/x.db*)" = "$DB" ]
	cp "$DB" "$TMP/copy.db"
	ag2-store -s "$TMP/copy.db" cat /big >out
	same big out
}

@test "reading a store that is not there is 66 and makes none" {
	run ag2-store cat /a
	status_is 66
	run ag2-store ls
	status_is 66
	[ ! -e "$DB" ]
}

@test "what is no store is 65 and stays as it is" {
	sql "CREATE TABLE other(x)"
	cp "$DB" before.db
	run ag2-store ls
	status_is 65
	has 'not a store'
	run ag2-store write /a <<<x
	status_is 65
	same before.db "$DB"
	head -c 5000 /dev/zero >"$DB"
	run ag2-store write /a <<<x
	status_is 65
	has 'not an SQLite database'
}

@test "a trigger that is not ours is not run" {
	echo text | ag2-store write /a
	sql "CREATE TABLE ran(x); CREATE TRIGGER evil AFTER UPDATE ON files BEGIN INSERT INTO ran VALUES(1); END"
	run ag2-store write /a <<<new
	status_is 65
	has "'evil'"
	run sql "SELECT count(*) FROM ran"
	output_is 0
}

@test "new files are private, directories too" {
	umask 0
	ag2-store -s "$TMP/deep/er/x.db" write /a <<<x
	[ "$(stat -c %a "$TMP/deep" "$TMP/deep/er" "$TMP/deep/er/x.db" | tr '\n' ' ')" = '700 700 600 ' ]
}

# The view as the first version made it, in the place of the one that is there.
first_view() {
	local triggers
	triggers=$(sql "SELECT group_concat(sql, ';') FROM sqlite_master WHERE type = 'trigger'")
	sql "DROP VIEW entries; $(cat <<'EOF'
CREATE VIEW entries(path, content, version) AS
SELECT path, (
	SELECT CASE length(c) WHEN size THEN c ELSE (
		WITH RECURSIVE r(n, c) AS (
			SELECT 0, x'' UNION ALL
			SELECT n + length(data), CAST(r.c || data AS BLOB) FROM r JOIN segments
			ON segments.id = (files.id << 40) + base + n WHERE data <> x''
		) SELECT r.c FROM r ORDER BY n DESC LIMIT 1
	) END FROM (
		SELECT COALESCE(CAST(group_concat(data, '') AS BLOB), x'') AS c FROM (SELECT data FROM segments
		WHERE id BETWEEN files.id << 40 AND files.id << 40 | 1099511627775 ORDER BY id)
	)
), version FROM files
EOF
	); $triggers"
}

@test "a store whose view an earlier version made is read as it is, and gets the present one with the first change" {
	ag2-store write /a <<<one
	sql "SELECT sql FROM sqlite_master ORDER BY name" >want
	first_view
	cp "$DB" before.db
	run -0 ag2-store cat /a
	output_is one
	run -0 ag2-store exists /a
	run -0 ag2-store ls -l
	run -0 ag2-store fsck
	output_is ""
	ag2-store rm -f /none
	same before.db "$DB"
	# In one transaction with it.
	for step in 60 100 120 135 140 145 150 155 160 170; do
		cp before.db "$DB"
		rm -f "$DB"-*
		run "$TOOLS/killat" "$step" ag2-store append /a <<<two
		[ "$status" -ne 77 ] || skip "no ptrace here"
		sql "SELECT hex(content) FROM entries" >content
		[ "$(cat content)" = 6F6E650A ] || [ "$(cat content)" = 6F6E650A74776F0A ]
		ag2-store append /a <<<three
		sql "SELECT sql FROM sqlite_master ORDER BY name" >got
		same want got
	done
	cp before.db "$DB"
	rm -f "$DB"-*
	run -0 ag2-store append /a <<<two
	output_is 4
	sql "INSERT OR REPLACE INTO entries VALUES('/b', 'three', 1)"
	run -0 ag2-store cat /a /b
	output_is $'one\ntwo\nthree'
	run -0 ag2-store fsck
	output_is ""
	cp before.db "$DB"
	ag2-store -s "$AG2_STORE?layout=ag2" append /a <<<two
	[ "$(sql "SELECT hex(content) FROM entries")" = 6F6E650A74776F0A ]
	[ "$(sql "SELECT count(*) FROM sqlite_master WHERE sql <> ''")" = 1 ]
}
