#!/usr/bin/env bats
# ?layout=ag2: a database that keeps, or gets back, the one table that AG2 makes.
load helper

setup() {
	clean_environment
	command -v sqlite3 >/dev/null || skip "no sqlite3 here"
	DB=$TMP/x.db
	ours=sqlite:$DB
	export AG2_STORE="sqlite:$DB?layout=ag2"
	table="CREATE TABLE entries (path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0)"
}

sql() {
	sqlite3 -batch -cmd '.timeout 5000' "$DB" "$@"
}

# What is in the database, and that it is one table as AG2 makes it.
is_plain() {
	[ "$(sql "SELECT group_concat(sql, ';') FROM sqlite_master WHERE sql <> ''" | tr -s ' \n' '  ' | sed 's/ *$//; s/( /(/; s/ )$/)/')" = "$table" ] || fail "$(sql .schema)"
	[ "$(sql "PRAGMA application_id")" = 0 ]
	[ "$(sql "SELECT count(*) FROM entries WHERE typeof(content) <> 'blob' OR typeof(path) <> 'text'")" = 0 ]
}

@test "what AG2 made keeps its table and all that it holds, whatever we change" {
	cp "$GOLDEN/ag2.db" "$DB"
	sql "SELECT path, hex(content), version FROM entries ORDER BY path" >before
	printf 'a\0b\377' | ag2-store write /memory/new
	run -0 ag2-store append /artifacts/wal.log <<<three
	output_is 9
	ag2-store log user "$(ag2-store log ls | head -n 1)" hello
	ag2-store rm /artifacts/empty.txt
	is_plain
	run sql "SELECT hex(content) FROM entries WHERE path IN ('/memory/new', '/artifacts/wal.log') ORDER BY path"
	output_is '6F6E650A7477C3B60A74687265650A
610062FF'
	sql "SELECT path, hex(content), version FROM entries ORDER BY path" >after
	[ "$(diff before after | grep -c '^<')" -eq 3 ]
	run -0 ag2-store fsck
	output_is ""
}

@test "a new database is AG2's from the first write; a file of it is AG2's BLOB" {
	ag2-store init --name x >/dev/null
	is_plain
	sql "INSERT OR REPLACE INTO entries (path, content, version) VALUES ('/a', 'text', 99); CREATE TABLE IF NOT EXISTS entries (path TEXT PRIMARY KEY, content BLOB NOT NULL, version INTEGER NOT NULL DEFAULT 0)"
	ag2-store append /a <<<more >/dev/null
	run -0 ag2-store cat /a
	output_is textmore
	[ "$(sql "SELECT version FROM entries WHERE path = '/a'")" -gt 99 ]
	is_plain
}

@test "a store of ours gets the table back at the first change, with every byte and version, and goes on" {
	head -c 300000 /dev/urandom >big
	ag2-store -s "$ours" write /big big
	ag2-store -s "$ours" append /big <<<end >/dev/null
	ag2-store -s "$ours" write /empty </dev/null
	ag2-store -s "$ours" write "$(printf '/n\377')" <<<odd
	ag2-store -s "$ours" ls -lR | sed 's/ *[0-9]*s  / /' >before
	{ cat big; echo end; } >want
	# Reading, and what changes nothing, leave it.
	ag2-store cat /big >got
	same want got
	ag2-store rm -f /none
	[ -n "$(sql "SELECT 1 FROM sqlite_master WHERE name = 'segments'")" ]
	ag2-store write /last <<<x
	is_plain
	ag2-store rm /last
	ag2-store cat /big >got
	same want got
	sql "SELECT writefile('got', content) FROM entries WHERE path = '/big'" >/dev/null
	same want got
	ag2-store ls -lR | sed 's/ *-  / /' >after
	same before after
	run sql "PRAGMA integrity_check"
	output_is ok
	# And back again.
	ag2-store -s "$ours" append /empty <<<x >/dev/null
	[ -n "$(sql "SELECT 1 FROM sqlite_master WHERE name = 'segments'")" ]
	ag2-store -s "$ours" cat /big >got
	same want got
}

@test "versions rise across deletion, conversion and what AG2 writes" {
	local before=0 now i
	for i in 1 2 3; do
		ag2-store write /a <<<"$i"
		now=$(ag2-store stat --json /a | jq -r .version)
		[ "$now" -gt "$before" ] || fail "$now after $before"
		before=$now
		ag2-store rm /a
		ag2-store -s "$ours" write /a <<<"$i"
		now=$(ag2-store stat --json /a | jq -r .version)
		[ "$now" -gt "$before" ] || fail "$now after $before"
		before=$now
		ag2-store -s "$ours" rm /a
		sql "INSERT OR REPLACE INTO entries VALUES ('/other', 'x', $((now + 50)))"
	done
}

@test "writers that want the one layout and the other, at once, lose nothing" {
	local p
	"$TOOLS/storehammer" append "$AG2_STORE" /s one 60 300 >one & p=$!
	"$TOOLS/storehammer" append "$ours" /s two 60 200 >two
	wait "$p"
	"$TOOLS/storehammer" check "$ours" /s >there
	sort one two >said
	sort there | diff - said
	run -0 ag2-store fsck
	output_is ""
}

@test "writers that are killed at random moments, in the middle of a conversion too" {
	"$TOOLS/storesoak" -w 1 -r 1 -k 3 "$AG2_STORE" 400
	local k
	ag2-store -s "$ours" write /keep <<<kept
	for k in 60 90 110 130 150 170 190 210 240; do
		run "$TOOLS/killat" "$k" ag2-store write /new <<<x
		[ "$status" -ne 77 ] || skip "no ptrace here"
		run -0 ag2-store cat /keep
		output_is kept
		run -0 ag2-store fsck
		ag2-store -s "$ours" write /new <<<y
	done
}

@test "another layout is a usage error; other stores have no such option" {
	run -64 ag2-store -s "sqlite:$DB?layout=new" ls
	has "only layout=ag2"
	run -64 ag2-store -s "disk:$TMP/d?layout=ag2" ls
	[ ! -e x.db ]
}
