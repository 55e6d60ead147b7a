#!/usr/bin/env bats
# Processes that die at a certain system call, and processes beside each other, on disk and on sqlite; 20-store-soak.bats has those that
# die at any moment.

load helper

setup() {
	clean_environment
	hammer=$TOOLS/storehammer
}

# both TEST...: on disk and on sqlite, each with a store of its own. (With `|| fail` behind it, nothing within a TEST that is a
# function would end the test but its last command.)
both() {
	local kind
	for kind in disk sqlite; do
		url=$kind:$TMP/$kind-store
		echo "# $url"
		"$@"
	done
}

# every_step MODE CHANGE...
every_step() {
	local mode=$1 change
	shift
	for change in "$@"; do
		echo "# $change"
		run "$TOOLS/storesteps" "$mode" "$url-$change" "$change"
		[ "$status" -eq 0 ] || fail "$output"
		case $output in
		skip*) skip "no ptrace here" ;;
		esac
		echo "# $output"
	done
}

@test "a writer killed before any one of its system calls leaves what was or what is to be" {
	both every_step kill append append-large append-new write write-new delete delete-directory delete-all replace-prefix many
}

@test "so does one that has changed the store before, on disk" {
	url=disk:$TMP/disk-store
	every_step again append append-large append-new write many
}

look() {
	run "$TOOLS/storesteps" look "$url"
	[ "$status" -eq 0 ] || fail "$output"
	case $output in
	skip*) skip "no ptrace here" ;;
	esac
}

@test "a commit before any one of a reader's system calls is seen by it whole or not at all" {
	both look
}

# Two writers and a reader of one file.
beside() {
	local size=$1 n=$2 a b w
	"$hammer" append "$url" /log/s one "$n" "$size" >one & a=$!
	"$hammer" append "$url" /log/s two "$n" "$((size / 2))" >two & b=$!
	"$hammer" watch "$url" /log/s "$((2 * n))" >seen & w=$!
	wait "$a" && wait "$b" && wait "$w" || return 1
	"$hammer" check "$url" /log/s >there
	sort one two >told
	sort there >found
	same told found
}

@test "two processes append while a third reads: nothing is lost, every offset is right, the reader sees whole records" {
	both beside 200 1000
}

@test "so with records of a quarter of a megabyte" {
	both beside 262144 100
}

# AG2 appends with O_APPEND and no lock, as this shell does.
@test "a process that appends to the file itself loses nothing, and offsets beside it are right" {
	"$hammer" append "disk:$TMP/s" /log/s first 1 100 >first
	"$hammer" append "disk:$TMP/s" /log/s one 2000 150 >one & writer=$!
	for i in $(seq 1000); do
		printf 'plain line %d\n' "$i" >>s/log/s
	done
	wait "$writer"
	[ "$(grep -c '^plain line [0-9]*$' s/log/s)" -eq 1000 ]
	# byte offsets of the records of the other, as grep finds them
	grep -b '^one ' s/log/s | awk -F'[: ]' '{ print $2, $3, $1 }' >found
	same one found
}

# What is mapped of it is gone then: that is a signal, of which nobody may die.
@test "appends go on while another program empties the journal again and again" {
	"$hammer" append "disk:$TMP/s" /log/s first 1 100 >first
	"$hammer" append "disk:$TMP/s" /log/s one 3000 100 >one & a=$!
	"$hammer" append "disk:$TMP/s" /log/s two 3000 150 >two & b=$!
	while kill -0 "$a" 2>/dev/null || kill -0 "$b" 2>/dev/null; do
		: >s/.ag2/lock
	done
	wait "$a"
	wait "$b"
	"$hammer" check "disk:$TMP/s" /log/s >there
	sort first one two >told
	sort there >found
	same told found
}
