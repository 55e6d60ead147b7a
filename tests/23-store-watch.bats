#!/usr/bin/env bats
# ag2-store watch, on every store that others can change.

load helper
load redis
load backend
load ag2

kinds=$everywhere

teardown() {
	if [ -e watch.pid ]; then
		kill "$(cat watch.pid)" 2>/dev/null || true
	fi
}

# watching [OPTION...] [PATH]: in the background, what it prints in the file seen; returns when it has begun.
watching() {
	: >seen
	: >said
	ag2-store watch -v "$@" >>seen 2>said 3>&- & watch=$!
	echo "$watch" >watch.pid
	wait_for 30 grep -q watching said
}

# sees LINE...: waits until the watch has printed these, in any order, and nothing else.
sees() {
	printf '%s\n' "$@" | LC_ALL=C sort >want
	wait_for 30 told || fail "want:" "$(cat want)" "got:" "$(cat seen)" "$(cat said)"
	: >seen
}

# Repeated lines are allowed: changes may be told as one or not.
told() {
	LC_ALL=C sort -u seen | cmp -s want -
}

changes() {
	ag2-store write /memory/a <<<1 || return 1
	ag2-store write /other <<<1 || return 1
	watching /memory
	ag2-store append /memory/a <<<2 >/dev/null
	sees 'changed /memory/a' || return 1
	ag2-store write /memory/new/deep/b <<<1
	sees 'changed /memory/new/deep/b' || return 1
	ag2-store write /memory/new/deep/b <<<2
	sees 'changed /memory/new/deep/b' || return 1
	ag2-store write /other <<<2
	ag2-store write /memories <<<2
	ag2-store rm /memory/a
	sees 'removed /memory/a' || return 1
	ag2-store rm -r /memory
	sees 'removed /memory/new/deep/b' || return 1
	ag2-store write /memory/again/c <<<1
	sees 'changed /memory/again/c' || return 1
	kill "$watch"
	wait "$watch" || true
}

@test "what is written, appended to, made and removed below the path is told, and nothing else" {
	everywhere changes
}

once() {
	ag2-store write /x <<<1 || return 1
	watching --once /y/z
	ag2-store write /x <<<2
	ag2-store write /y/z <<<1
	wait "$watch" || return 1
	[ "$(cat seen)" = "changed /y/z" ] || fail "$(cat seen)"
	run -1 ag2-store watch --timeout 0.2 /x
	output_is "" || return 1
	# Something is written while it waits, whenever that is.
	: >seen
	(until [ -s seen ]; do ag2-store write /x <<<3; done) 3>&- & writer=$!
	watching --timeout 1
	wait "$writer"
	wait "$watch" || fail "status $?" || return 1
	[ "$(sort -u seen)" = "changed /x" ] || fail "$(cat seen)"
}

@test "--once ends after a change, --timeout without one, 1 when there was none" {
	everywhere once
}

executes() {
	ag2-store write /x <<<1 || return 1
	: >log
	# shellcheck disable=SC2016
	watching --exec 'echo "$AG2_CHANGE $AG2_PATH $(ag2-store cat "$AG2_PATH" 2>/dev/null)" >>log'
	ag2-store write /x <<<two
	wait_for 30 grep -qx 'changed /x two' log || return 1
	ag2-store rm /x
	wait_for 30 grep -q 'removed /x' log || return 1
	kill "$watch"
	wait "$watch" || true
	ag2-store write /y <<<1
	watching --once --exec 'exit 7' /
	ag2-store write /y <<<2
	wait "$watch" && return 1
	[ $? -eq 7 ] || return 1
	grep -q 'status 7' said
}

@test "--exec runs a command with the path, and --once gives its status" {
	everywhere executes
}

by_ag2() {
	ag2-store write /x <<<1 || return 1
	ag2 open
	watching
	ag2 put /x new
	sees 'changed /x' || return 1
	ag2 add /x more
	sees 'changed /x' || return 1
	# one goes and one comes between two looks
	ag2 del /x
	ag2 put /d/y new
	sees 'removed /x' 'changed /d/y' || return 1
	ag2 del /d
	sees 'removed /d/y' || return 1
	ag2 put /x again
	sees 'changed /x' || return 1
	ag2 del /x
	sees 'removed /x' || return 1
	kill "$watch"
	wait "$watch" || true
}

siblings() {
	local path
	ag2-store write /other <<<1
	watching /a_b
	for path in /aXb/x /A_B/x /a_bc /a_b.x/y /a /a_b-/z /; do
		[ "$path" = / ] || ag2-store write "$path" <<<1 || return 1
	done
	ag2-store write /a_b/x <<<1
	sees 'changed /a_b/x' || return 1
	ag2-store rm -r /A_B
	ag2-store rm -r /aXb
	ag2-store rm -r /a_b
	sees 'removed /a_b/x' || return 1
	kill "$watch"
	wait "$watch" || true
	# A file that is not there yet, in a directory that is not, and whose name is a pattern.
	watching '/n*w/[f]%'
	ag2-store write /new/f <<<1
	ag2-store write '/n*w/f%' <<<1
	ag2-store write '/n*w/[f]%' <<<1
	sees 'changed /n*w/[f]%' || return 1
	kill "$watch"
	wait "$watch" || true
}

@test "of names that are alike, in another case or as patterns, only the one that is watched is told" {
	everywhere siblings
}

odd_names() {
	local name=$'\'"$(touch pwned)`touch pwned`;touch pwned\n x\\'
	rm -f path
	ag2-store write /x <<<1 || return 1
	watching --once --exec 'printf %s "$AG2_PATH" >path; [ "$AG2_CHANGE" = changed ] && ag2-store cat "$AG2_PATH" >content'
	ag2-store write "/odd/$name" <<<text
	wait "$watch" || return 1
	[ "$(cat path)" = "/odd/$name" ] || fail "$(cat path)" || return 1
	[ "$(cat content)" = text ] && [ ! -e pwned ]
}

@test "--exec has any name as it is, and no part of one is run" {
	everywhere odd_names
}

@test "what AG2 writes is told" {
	everywhere by_ag2
}

@test "editors that rename over a file, and renames of files, are told by both names" {
	export AG2_STORE=disk:$TMP/s
	ag2-store write /memory/working.md <<<1
	ag2-store write /memory/a.md <<<1
	watching /memory
	for i in 1 2; do
		echo "text $i" >s/memory/.tmp
		mv s/memory/.tmp s/memory/working.md
		wait_for 30 grep -q 'changed /memory/working.md' seen
		: >seen
	done
	mv s/memory/a.md s/memory/b.md
	sees 'removed /memory/a.md' 'changed /memory/b.md'
	mv s/memory/b.md outside
	sees 'removed /memory/b.md'
	mv outside s/memory/c.md
	sees 'changed /memory/c.md'
	mkdir -p dir/sub
	echo 1 >dir/sub/x
	mv dir s/memory/
	sees 'changed /memory/dir/sub/x'
	mv s/memory/dir s/memory/folder
	sees 'removed /memory/dir/sub/x' 'changed /memory/folder/sub/x'
	echo 2 >s/memory/folder/sub/x
	sees 'changed /memory/folder/sub/x'
	mv s/memory/folder elsewhere
	sees 'removed /memory/folder/sub/x'
	echo 3 >elsewhere/sub/x
	echo 3 >s/memory/c.md
	sees 'changed /memory/c.md'
}

@test "a directory that is removed and made again is watched again; without its store the watch ends with 66" {
	export AG2_STORE=disk:$TMP/s
	ag2-store write /log/x <<<1
	ag2-store write /log/y <<<1
	watching /log
	rm -r s/log
	sees 'removed /log/x' 'removed /log/y'
	mkdir s/log
	echo 1 >s/log/x
	sees 'changed /log/x'
	rm -r s
	sees 'removed /log/x'
	wait "$watch" && return 1
	[ $? -eq 66 ]
	grep -q 'was removed' said
	export AG2_STORE=sqlite:$TMP/s.db
	ag2-store write /x <<<1
	watching
	rm s.db*
	wait "$watch" && return 1
	[ $? -eq 66 ]
}

@test "a store that is moved away, or replaced by another, is not watched under its name any more: 66" {
	export AG2_STORE=disk:$TMP/s
	ag2-store write /x <<<1
	cp -r s other
	for next in other nothing; do
		watching
		mv s "before-$next"
		[ ! -e $next ] || mv "$next" s
		wait "$watch" && return 1
		[ $? -eq 66 ]
		grep -q moved said
	done
	export AG2_STORE=sqlite:$TMP/s.db
	ag2-store write /x <<<1
	cp s.db other.db
	watching
	mv other.db s.db
	wait "$watch" && return 1
	[ $? -eq 66 ]
	grep -q 'another is in its place' said
}

@test "more events than the kernel keeps are no loss" {
	export AG2_STORE=disk:$TMP/s
	ag2-store write /d/0 <<<1
	watching /d
	kill -STOP "$watch"
	# Twice the queue, of files that are closed and of one that goes.
	max=$(cat /proc/sys/fs/inotify/max_queued_events)
	[ "$max" -le 40000 ] || skip "the queue holds $max"
	for i in $(seq 200); do : >"s/d/$i"; done
	for i in $(seq $((max / 2 / 200 + 1))); do
		touch s/d/1?? s/d/??
	done
	rm s/d/0
	kill -CONT "$watch"
	wait_for 60 grep -qx 'removed /d/0' seen
	wait_for 60 has_all
	echo x >s/d/after
	wait_for 60 grep -qx 'changed /d/after' seen
}

has_all() {
	[ "$(grep -c '^changed /d/[0-9]*$' <(sort -u seen))" -eq 200 ]
}

@test "a store in memory can only be waited for in vain" {
	run -64 ag2-store -s memory: watch
	has "nothing to wait for"
	run -1 ag2-store -s memory: watch --timeout 0.1
}
