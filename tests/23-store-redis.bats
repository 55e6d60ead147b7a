#!/usr/bin/env bats
# The store on a Redis server: what every store does, crashes, processes beside each other, AG2 beside us, and a server
# that does not do as it should.

load helper
load redis

setup() {
	clean_environment
	hammer=$TOOLS/storehammer
	redis_start
	export AG2_STORE=$url
}

teardown() {
	redis_stop
}

@test "it does what every store does" {
	cd "$ROOT"
	AG2_TEST_STORE=$url run "$UNIT/store"
	[ "$status" -eq 0 ] || fail "$(grep -A3 '^not ok' <<<"$output")"
}

@test "a prefix and a database keep stores apart" {
	ag2-store write /x <<<1
	ag2-store -s "$url?db=3&prefix=other%20one:" write /x <<<2
	run -0 ag2-store cat /x
	output_is 1
	[ "$(rc DBSIZE)" -gt 0 ]
	run -0 rc -n 3 KEYS '*'
	hasnt ag2:knowledge
	has "other one:__index"
}

@test "two processes append while a third reads: nothing is lost, every offset is right, the reader sees whole records" {
	for size in 200 262144; do
		n=$((size > 1000 ? 60 : 1000))
		"$hammer" append "$url" /log/$size one "$n" "$size" >one & a=$!
		"$hammer" append "$url" /log/$size two "$n" "$((size / 2))" >two & b=$!
		"$hammer" watch "$url" /log/$size "$((2 * n))" >seen & w=$!
		wait "$a" && wait "$b" && wait "$w"
		"$hammer" check "$url" /log/$size >there
		sort one two >told
		sort there >found
		same told found
	done
}

@test "a listing follows what AG2 writes and deletes between our changes" {
	ag2-store write /a <<<1
	ag2_write /b 2
	run -0 ag2-store ls
	output_is $'a\nb'
	ag2-store append /a <<<3
	ag2_write /d/c 4
	ag2_delete /b
	run -0 ag2-store ls -R
	output_is $'/a\n/d/\n/d/c'
	# Its change of one name for another keeps the count; its version is taken before ours and added after.
	rc INCR ag2:knowledge:__version_counter >late
	ag2-store append /a <<<5
	ag2_delete /d/c
	rc SET ag2:knowledge:/e late
	rc ZADD ag2:knowledge:__index "$(cat late)" /e
	ag2-store append /a <<<6
	ag2_write /f 7
	run -0 ag2-store ls -R
	output_is $'/a\n/e\n/f'
	# In the middle of its write: the value is there, the index is not.
	rc SET ag2:knowledge:/g half
	[ "$(ag2-store cat /g)" = half ]
	run -0 ag2-store append /g <<<more
	output_is 4
	run -0 ag2-store ls
	has g
}

@test "names that no path can have are passed over, whatever AG2 has put into its index" {
	local m long
	long=/$(printf 'n%.0s' {1..256})/x
	ag2-store write /memory/a.md <<<hi
	for m in zz/b no 0x '' / /t/ //dd /a/../b /a/./c "$long" $'/nl\n/x'; do ag2_write "$m" x; done
	# With the index that AG2 has left, and with ours when that follows it.
	for _ in 1 2; do
		run -0 timeout 20 ag2-store ls /
		output_is $'a/\nmemory/\nnl\n/\nt/'
		run -0 timeout 20 ag2-store ls -R /
		has /memory/a.md
		run -0 timeout 20 ag2-store tree
		run -0 timeout 20 ag2-store grep hi
		output_is /memory/a.md:hi
		timeout 20 ag2-store export | tar -t >names
		grep -qx memory/a.md names
		rm -f said
		timeout 20 ag2-store watch --once -v /memory/a.md >seen 2>said 3>&- & watch=$!
		wait_for 10 grep -q watching said
		ag2-store append /memory/a.md <<<hi >/dev/null
		wait "$watch"
		ag2-store write /memory/a.md <<<hi
	done
	run -1 ag2-store fsck
	[ "$(grep -c ': is a path that no command of ours can name$' <<<"$output")" -eq 10 ] || fail "$output"
	ag2-store rm /memory/a.md
	[ "$(rc ZCARD ag2:knowledge:__index)" -eq 11 ]
}

@test "a reader keeps our index in step with what AG2 writes, where it may, and makes none" {
	local names=ag2:knowledge:__ag2:names mode
	ag2_write /a 1
	run -0 ag2-store ls
	output_is a
	[ "$(rc EXISTS $names ag2:knowledge:__ag2:synced)" -eq 0 ]
	ag2-store write /b <<<2
	ag2_write /c 3
	run -0 ag2-store ls
	output_is $'a\nb\nc'
	[ "$(rc ZCARD $names)" -eq 3 ]
	ag2_delete /b
	run -0 ag2-store ls
	output_is $'a\nc'
	[ "$(rc ZCARD $names)" -eq 2 ]
	# One that may not reads all the same: without permission, without memory, with members that are in no order.
	rc ACL SETUSER reader on '>pw' '~ag2:*' +@all -@write >/dev/null
	ag2_write /d/e 4
	REDISCLI_AUTH=pw run -0 ag2-store -s "$url?user=reader" ls -R
	output_is $'/a\n/c\n/d/\n/d/e'
	[ "$(rc ZCARD $names)" -eq 2 ]
	rc CONFIG SET maxmemory 1 >/dev/null
	run -0 ag2-store ls -R
	output_is $'/a\n/c\n/d/\n/d/e'
	rc CONFIG SET maxmemory 0 >/dev/null
	rc ZADD $names 7 /a 3 /d/e 5 /x >/dev/null
	run -0 timeout 20 ag2-store ls -R
	output_is $'/a\n/c\n/d/\n/d/e'
	[ "$(rc ZCOUNT $names 0 0)" -eq 3 ]
	[ "$(rc ZCARD $names)" -eq 3 ]
}

@test "AG2's commands beside our appends lose nothing of other files, and an atomic append nothing of the same" {
	"$hammer" append "$url" /log/ours one 1500 150 >one & writer=$!
	for i in $(seq 60); do
		ag2_write "/memory/$((i % 7))" "note $i"
		rc APPEND ag2:knowledge:/log/shared "line $i"$'\n'
		ag2-store append /log/shared <<<"ours $i"
	done >/dev/null
	wait "$writer"
	"$hammer" check "$url" /log/ours >there
	same one there
	[ "$(ag2-store cat /log/shared | grep -c '^line')" -eq 60 ]
	[ "$(ag2-store cat /log/shared | grep -c '^ours')" -eq 60 ]
	run -0 ag2-store ls /memory
	output_is $'0\n1\n2\n3\n4\n5\n6'
}

@test "a large file that is open stays as it was while others append to it, write over it and delete it" {
	"$hammer" append "$url" /big one 30 100000 >/dev/null
	ag2-store cat /big >want
	mkfifo pipe
	for change in "append /big" "write /big" "rm /big"; do
		ag2-store write /big <want
		ag2-store cat /big >pipe & reader=$!
		exec 5<pipe
		head -c 1000 <&5 >got
		# shellcheck disable=SC2086
		ag2-store $change <<<changed >/dev/null
		cat <&5 >>got
		exec 5<&-
		wait "$reader"
		same want got
	done
}

@test "a password is taken from the environment or a command, and its lack is told" {
	rc CONFIG SET requirepass 'se cret' >/dev/null
	run -77 ag2-store ls
	has "wants a password"
	REDISCLI_AUTH=wrong run -77 ag2-store ls
	has "does not accept"
	hasnt wrong
	export REDISCLI_AUTH='se cret'
	ag2-store write /x <<<1
	unset REDISCLI_AUTH
	echo 'se cret' >pw
	run -0 ag2-store -s "$url?password_cmd=cat%20$TMP/pw" cat /x
	output_is 1
	run -77 ag2-store -s "$url?password_cmd=exit%203" cat /x
	has "status 3"
	run -64 ag2-store -s redis://me:pass@localhost/0 ls
	hasnt pass@
	rc -a 'se cret' --no-auth-warning CONFIG SET requirepass '' >/dev/null
	REDISCLI_AUTH=unneeded run -0 ag2-store cat /x
	output_is 1
}

@test "a password that the server repeats is not told on" {
	redis_stop
	redis_start --rename-command AUTH ''
	REDISCLI_AUTH='se cret' run -77 ag2-store ls
	has "refuses the password"
	hasnt cret
}

@test "a user with the permissions that the page names does everything; with AG2's commands alone nothing, by half neither" {
	rc ACL SETUSER min on '>pw' '~ag2:knowledge:*' -@all +@read +@write +eval +evalsha +time >/dev/null
	export REDISCLI_AUTH=pw
	for option in "?user=min" "?user=min&lock=1"; do
		AG2_STORE=$url$option
		ag2-store write /d/x <<<1
		ag2-store append /d/x <<<2 >/dev/null
		run -0 ag2-store ls -R
		output_is $'/d/\n/d/x'
		ag2-store lock /d/x -- ag2-store rm /d/x
	done
	run -0 ag2-store fsck --repair
	ag2-store watch --once -v >seen 2>said 3>&- & watch=$!
	wait_for 30 grep -q watching said
	ag2-store write /x <<<1
	wait "$watch"
	grep -qx 'changed /x' seen
	unset REDISCLI_AUTH
	rc ACL SETUSER ag2 on '>pw' '~ag2:knowledge:*' -@all +get +set +append +incr +del +exists +zadd +zrem +zrange +zscore +eval +evalsha >/dev/null
	REDISCLI_AUTH=pw run -77 ag2-store -s "$url?user=ag2" append /x <<<2
	has "may not"
	run -0 ag2-store -s "$url" cat /x
	output_is 1
	run -0 ag2-store -s "$url" fsck
}

@test "a user that may not write, or not at all, is told so" {
	ag2-store write /x <<<1
	rc ACL SETUSER reader on '>pw' '~ag2:*' +@all -@write >/dev/null
	export REDISCLI_AUTH=pw
	run -0 ag2-store -s "$url?user=reader" cat /x
	output_is 1
	run -77 ag2-store -s "$url?user=reader" append /x <<<2
	has "may not"
	run -77 ag2-store -s "$url?user=nobody" cat /x
	unset REDISCLI_AUTH
	[ "$(ag2-store cat /x)" = 1 ]
}

@test "no server is 69, at once" {
	redis_stop
	run -69 ag2-store ls
	has "no server is there"
	run -69 ag2-store -s redis://127.0.0.1:1/0 ls
	has "connection refused"
	run -77 ag2-store -s "$url?timeout=1&prefix=" ls || status_is 64
}

@test "a server that is stopped is 75 when the timeout has passed, and takes the change when it goes on in time" {
	ag2-store write /x <<<1
	kill -STOP "$redis_pid"
	run -75 ag2-store -s "$url?timeout=0.3" append /x <<<2
	has "no answer in time"
	ag2-store append /x <<<3 >offset & writer=$!
	kill -CONT "$redis_pid"
	wait "$writer"
	# the first was sent before the server stopped listening to us, and may have been done
	run -0 ag2-store cat /x
	case $output in
	$'1\n3' | $'1\n2\n3' | $'1\n3\n2') ;;
	*) fail "$output" ;;
	esac
}

@test "an append whose answer was lost is there once" {
	ag2-store write /x </dev/null
	for i in $(seq 20); do
		# The server is told to go on a little later; the connection of the append is cut in between.
		kill -STOP "$redis_pid"
		echo "line $i" | ag2-store append /x >/dev/null & writer=$!
		sleep 0.02
		kill -CONT "$redis_pid"
		rc CLIENT KILL TYPE normal SKIPME yes >/dev/null
		wait "$writer"
	done
	seq -f 'line %g' 20 >want
	ag2-store cat /x >got
	same want got
}

@test "a server that comes back with its data goes on with what it had" {
	redis_stop
	# By default it may answer before it has written, while the disk is slow.
	redis_start --appendonly yes --appendfsync always
	(
		for i in $(seq 200); do
			echo "line $i" | ag2-store append /x >/dev/null || exit 1
		done
	) & writer=$!
	wait_for 30 aof_written
	"$hammer" append "$url?timeout=60" /y one 3000 100 >one & other=$!
	wait_for 30 test -s one
	redis_stop
	redis_start --appendonly yes --appendfsync always
	wait "$other"
	wait "$writer" || true	# one that began while there was no server said so
	"$hammer" check "$url" /y >there
	same one there
}

# Redis 7 has a directory of them, Redis 6 the one file.
aof_written() {
	cat redis-data/appendonlydir/*.incr.aof redis-data/appendonly.aof 2>/dev/null | grep -q .
}

@test "a server that comes back empty has no store" {
	ag2-store write /x <<<1
	redis_stop
	redis_start
	run -66 ag2-store cat /x
	has "no store"
	run -0 ag2-store append /x <<<2
	output_is 0
}

@test "a server out of memory is 74, and nothing is changed by half" {
	ag2-store write /x <<<1
	ag2-store write /y <<<1
	rc CONFIG SET maxmemory 1 >/dev/null
	run -74 ag2-store append /x <<<2
	has "out of memory"
	[ "$(ag2-store cat /x)" = 1 ]
	ag2-store rm /y
	rc CONFIG SET maxmemory 0 >/dev/null
	ag2-store append /x <<<3
	run -0 ag2-store cat /x
	output_is $'1\n3'
}

@test "a server that cannot save is 74" {
	ag2-store write /x <<<1
	redis_stop
	redis_start --dbfilename sub
	rc CONFIG SET save '3600 1' >/dev/null
	ag2-store write /x <<<1
	mkdir redis-data/sub
	rc BGSAVE >/dev/null
	wait_for 30 bgsave_failed
	run -74 ag2-store append /x <<<2
	has "cannot save"
	[ "$(ag2-store cat /x)" = 1 ]
}

bgsave_failed() {
	rc INFO persistence | grep -q 'rdb_last_bgsave_status:err'
}

@test "a replica is 77 for changes and serves readers" {
	ag2-store write /x <<<1
	ag2_write /d/y 2
	rc REPLICAOF 127.0.0.1 1 >/dev/null
	run -77 ag2-store append /x <<<2
	has "read-only replica"
	run -0 ag2-store ls -R
	output_is $'/d/\n/d/y\n/x'
	[ "$(ag2-store cat /x)" = 1 ]
}

@test "a password that is changed ends those who have the old one, and is told; nothing acknowledged is lost" {
	rc CONFIG SET requirepass old >/dev/null
	echo old >pw
	"$hammer" append "$url?password_cmd=cat%20$TMP/pw" /y one 1000000 100 >one 2>said & writer=$!
	wait_for 30 test -s one
	rc --no-auth-warning -a old CONFIG SET requirepass new >/dev/null
	rc --no-auth-warning -a new CLIENT KILL TYPE normal SKIPME yes >/dev/null
	! wait "$writer"
	grep -q "does not accept the" said
	REDISCLI_AUTH=old run -77 ag2-store ls
	has "does not accept the"
	echo new >pw
	"$hammer" check "$url?password_cmd=cat%20$TMP/pw" /y >there
	head -n "$(wc -l <one)" there >there-told
	same one there-told
}

@test "nothing hangs on a server that is stopped: every command is 75 within the timeout" {
	ag2-store write /x <<<1
	kill -STOP "$redis_pid"
	for command in 'append /x' 'write /x' 'cat /x' ls 'stat /x' 'rm /x' tree 'grep x' 'log ls' 'lock -w 0 /x -- true' export fsck 'watch --timeout 5 /x'; do
		# shellcheck disable=SC2086
		run timeout 20 ag2-store -s "$url?timeout=0.2" $command <<<2
		[ "$status" -eq 75 ] || fail "$command: status $status" "$output"
		has "no answer in time"
	done
	kill -CONT "$redis_pid"
	ag2-store append /y <<<2
}

# refuses STATUS TEXT: of a change, without waiting longer than told; the store is then as it was.
refuses() {
	run timeout 20 ag2-store -s "$url?timeout=0.3" append /x <<<2
	status_is "$1"
	has "$2"
}

@test "a server that is busy, full of clients, without its replicas or its master says which" {
	ag2-store write /x <<<1
	rc CONFIG SET busy-reply-threshold 100 >/dev/null 2>&1 || rc CONFIG SET lua-time-limit 100 >/dev/null
	rc EVAL 'while true do end' 0 >/dev/null 2>&1 &
	wait_for 10 sh -c "redis-cli -s '$socket' PING 2>&1 | grep -q BUSY"
	refuses 75 "busy with a script"
	rc SCRIPT KILL >/dev/null
	wait_for 10 sh -c "redis-cli -s '$socket' PING 2>&1 | grep -q PONG"
	rc CONFIG SET min-replicas-to-write 1 >/dev/null
	refuses 75 "too few replicas"
	rc CONFIG SET min-replicas-to-write 0 >/dev/null
	# Told by the one client that stays: one that has left may count for a while, and be in its way.
	exec 5> >(rc >/dev/null 2>&1)
	echo 'CONFIG SET maxclients 1' >&5
	wait_for 10 sh -c "redis-cli -s '$socket' PING 2>&1 | grep -q 'max number of clients'"
	refuses 75 "too many clients"
	echo 'CONFIG SET maxclients 100' >&5
	exec 5>&-
	wait_for 10 sh -c "redis-cli -s '$socket' PING 2>&1 | grep -q PONG"
	rc CONFIG SET replica-serve-stale-data no >/dev/null
	rc REPLICAOF 127.0.0.1 1 >/dev/null
	refuses 75 "lost its master"
	rc REPLICAOF NO ONE >/dev/null
	run -0 ag2-store cat /x
	output_is 1
	rc DEL ag2:knowledge:/x >/dev/null
	rc LPUSH ag2:knowledge:/x 1 >/dev/null
	refuses 65 "no store's"
}

@test "a server that is loading is waited for, 75 beyond the timeout" {
	ag2-store write /x <<<1
	rc EVAL 'for i = 1, 8000 do redis.call("SET", "filler"..i, string.rep("x", 100)) end' 0 >/dev/null
	rc SAVE >/dev/null
	redis_stop
	rm -f "$socket"
	redis-server --port 0 --unixsocket "$socket" --dir "$TMP/redis-data" --save '' --key-load-delay 20000 \
		--loading-process-events-interval-bytes 1024 --logfile "$TMP/redis.log" 3>&- 4>&- >/dev/null 2>&1 &
	echo $! >redis.pid
	redis_pid=$!
	wait_for 60 sh -c "redis-cli -s '$socket' PING 2>&1 | grep -q LOADING || ! kill -0 $redis_pid"
	! redis_gone || skip "this server cannot be told to load slowly"
	run -75 ag2-store -s "$url?timeout=2" cat /x
	has loading
	rc CONFIG SET key-load-delay 0 >/dev/null
	run -0 ag2-store -s "$url?timeout=60" cat /x
	output_is 1
}

@test "a lock is held beyond its time to live while its holder lives, and ends with it" {
	ag2-store lock --ttl 5 /l -- sh -c 'echo held; while [ ! -e end ]; do sleep 0.05; done; echo done' >out & holder=$!
	wait_for 30 grep -q held out
	sleep 5.5
	run -75 ag2-store lock -w 0 /l -- true
	has "held by another"
	touch end
	run -0 ag2-store lock -w 30 /l -- cat out
	output_is $'held\ndone'
	wait "$holder"
}

@test "a lock for no time is refused" {
	local ttl
	for ttl in 0 0.0001 1e300; do
		run -64 ag2-store lock "--ttl=$ttl" /l -- true
		has ttl
	done
}

@test "a lock that was lost is told, and the next one's is left alone" {
	ag2-store lock --ttl 1 /l -- sh -c 'echo held; exec sleep 60' >out 2>said & holder=$!
	wait_for 30 grep -q held out
	rc SET ag2:knowledge:__ag2:lock:/l other >/dev/null
	wait "$holder" && fail "it says nothing of it" || [ $? -eq 75 ]
	grep -q lost said
	[ "$(rc GET ag2:knowledge:__ag2:lock:/l)" = other ]
}

@test "a lock whose key is deleted, or whose holder was stopped beyond its time to live, is lost; the next one's is left alone" {
	ag2-store lock --ttl 1 /l -- sh -c 'echo held; exec sleep 60' >out 2>said & holder=$!
	wait_for 30 grep -q held out
	rc DEL ag2:knowledge:__ag2:lock:/l >/dev/null
	wait "$holder" && fail "it says nothing of it" || [ $? -eq 75 ]
	grep -q lost said
	ag2-store lock --ttl 3 /l -- sh -c 'echo again; exec sleep 60' >out 2>said & holder=$!
	wait_for 30 grep -q again out
	kill -STOP "$holder"
	# The next one has it once the time is over, and keeps it when the first goes on.
	ag2-store lock -w 30 /l -- sh -c "echo next; kill -CONT $holder; while kill -0 $holder 2>/dev/null; do sleep 0.05; done; sleep 0.3; echo kept" >next & second=$!
	wait "$holder" && fail "it says nothing of it" || [ $? -eq 75 ]
	grep -q lost said
	wait "$second"
	[ "$(cat next)" = "next
kept" ]
}

@test "a holder that is stopped beyond its time to live: what its command writes is refused, in that store only" {
	ag2-store lock --ttl 3 /outer -- ag2-store lock --ttl 60 /l -- sh -c '
		echo first | ag2-store append /x
		echo held; while [ ! -e go ]; do sleep 0.05; done
		echo second | ag2-store append /x; echo "ended with $?"
		echo elsewhere | ag2-store -s "disk:other" append /x' >out 2>said & holder=$!
	wait_for 30 grep -q held out
	kill -STOP "$holder"
	ag2-store lock -w 30 /outer -- sh -c 'echo next | ag2-store append /x >/dev/null; touch go
		while ! grep -q "ended with" out; do sleep 0.05; done'
	kill -CONT "$holder"
	wait "$holder" && fail "it says nothing of it" || [ $? -eq 75 ]
	run -0 ag2-store cat /x
	output_is $'first\nnext'
	grep -q 'ended with 75' out
	grep -q "lock on '/outer' was lost: nothing is written" said
	[ "$(ag2-store -s disk:other cat /x)" = elsewhere ]
}

@test "a lock and its server: one that comes back with its data keeps it, one that comes back empty or not at all has lost it" {
	ag2-store lock --ttl 20 /l -- sh -c 'echo held; while [ ! -e end ]; do sleep 0.05; done' >out 2>said & holder=$!
	wait_for 30 grep -q held out
	rc SAVE >/dev/null
	redis_stop
	redis_start
	touch end
	wait "$holder"
	[ ! -s said ]
	for again in redis_start true; do
		: >out
		ag2-store -s "$url?timeout=100" lock --ttl 1 /l -- sh -c 'echo held; exec sleep 60' >out 2>said & holder=$!
		wait_for 30 grep -q held out
		redis_stop
		rm -f redis-data/*
		"$again"
		wait_for 30 grep -q lost said
		wait_for 30 sh -c "! kill -0 $holder 2>/dev/null"
		wait "$holder" && fail "it says nothing of it" || [ $? -eq 75 ]
	done
}

@test "who has lost a lock writes no more: a turn whose lock went keeps its answer out of the log, and prints it" {
	cat >model <<-'EOF'
		#!/bin/sh
		cat >/dev/null
		redis-cli -s "$SOCKET" SET ag2:knowledge:__ag2:lock:/log/s.jsonl another >/dev/null
		echo answer
	EOF
	chmod +x model
	SOCKET=$socket run -74 ag2-ask -s "$url" --stream s -m "exec:$TMP/model" question
	has "lost"
	run -0 ag2-store log cat s
	has question
	hasnt answer
	[ "$(rc GET ag2:knowledge:__ag2:lock:/log/s.jsonl)" = another ]
}

@test "the URL is taken to pieces, and what is wrong with it is told" {
	run -64 ag2-store -s "$url?prefix=" ls
	has prefix
	run -64 ag2-store -s "$url?db=x" ls
	has "no number of a database"
	run -64 ag2-store -s "$url?speed=high" ls
	has "password_cmd="
	run -64 ag2-store -s redis:/x ls
	run -64 ag2-store -s redis://localhost:99999/ ls
	has port
	run -64 ag2-store -s redis://localhost:0/ ls
	has port
	run -64 ag2-store -s "redis+unix:?prefix=x" ls
	has "needs the path"
	run -64 ag2-store -s "$url?prefix=%zz" ls
	run ag2-store -s "rediss://localhost/0?cacert=x" ls
	[ "$status" -eq 64 ] || { status_is 78 && has TLS; }
	run -64 ag2-store -s "$url?cacert=/x" ls
	run -78 ag2-store -s "$url?db=99" ls
	has databases
}

@test "a password in the URL is refused, wherever it stands, and no part of it is told" {
	local u
	for u in "$url?password=" "$url?pass=" "redis://h/0?auth=" "redis+unix:/x?db=1&pw=" "disk:/x?password="; do
		run -64 ag2-store -s "${u}SECRET" ls
		hasnt SECRET
		has "'${u##*[?&]}'"
	done
	for u in redis+unix://u:SECRET@/x redis:///u:SECRET@h/0 REDIS://u:SECRET@h/0 redis://u:SECRET@h redis://:SECRET@h/ redis:/u:SECRET@h \
		redis://u:SEC/SECRET@h/0 redis://h/SECRET redis://h:SECRET/ redis+unix://SECRET@/x redis+unix:u:SECRET@x 'redis://u:x?SECRET@h/0' \
		'redis://[::1]:SECRET@h/'; do
		run -64 ag2-store -s "$u" ls
		hasnt SECRET
		run -64 ag2-assemble -s "$u" --stream s
		hasnt SECRET
	done
	# A socket whose name has both characters is another matter.
	run -69 ag2-store -s "redis+unix:$TMP/a%3ab%40c" ls
	has "redis at $TMP/a:b@c"
}

@test "a password_cmd may take as long as the timeout, and is told just that" {
	run -69 ag2-store -s "$url?timeout=0.2&password_cmd=sleep%2099" ls
	has "it ran longer than 0.2 seconds"
}

@test "sync=full is promised only by a server that can keep it" {
	run -78 ag2-store -s "$url?sync=full" write /x <<<1
	has appendfsync
	redis_stop
	redis_start --appendonly yes --appendfsync always
	run -0 ag2-store -s "$url?sync=full" write /x <<<1
	run -0 ag2-store -s "$url?sync=full" cat /x
	output_is 1
}

@test "the other programs use it" {
	ag2-store init --name scribe
	[ "$(ag2-store cat /.initialized)" = scribe ]
	ag2-store log user s hello
	run -0 ag2-store log ls
	output_is s
	run -0 ag2-assemble --stream s
	has hello
}

@test "lock=1 makes changes wait for each other, and only changes" {
	for store in "$url?" "disk:$TMP/s?" "sqlite:$TMP/s.db?"; do
		ag2-store -s "${store}lock=1" write /x <<<1
		"$hammer" append "${store}lock=1" /log a 60 100 >one & a=$!
		"$hammer" append "${store}lock=1" /log b 60 100 >two & b=$!
		wait "$a" && wait "$b"
		"$hammer" check "$store" /log >there
		sort one two >told
		sort there >found
		same told found
		run -64 ag2-store -s "${store}lock=2" ls
	done
	# As a holder that lives elsewhere.
	rc SET ag2:knowledge:__ag2:lock:store:write:/x other >/dev/null
	run -75 ag2-store -s "$url?lock=1&timeout=0.3" append /x <<<2
	has 'store:write:/x'
	run -0 ag2-store -s "$url?lock=1&timeout=0.3" cat /x
	output_is 1
	ag2-store -s "$url?lock=1" append /y <<<2
}
