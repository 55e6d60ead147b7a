# Loaded by every tests/*.bats: `load helper`.
#
# Sets ROOT (the top of the source), BIN, TOOLS and UNIT (programs, test tools, unit tests of the build that is tested)
# and TMP (this test's own directory, where the test starts). Nothing of the caller's environment reaches the programs:
# no AG2_* setting, no key, no home directory. Golden data is in $ROOT/tests/golden.

bats_require_minimum_version 1.5.0

ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
AG2_BUILD=${AG2_BUILD:-build/release}
case $AG2_BUILD in
/*) ;;
*) AG2_BUILD=$ROOT/$AG2_BUILD ;;
esac
BIN=$AG2_BUILD/bin
TOOLS=$AG2_BUILD/tools
UNIT=$AG2_BUILD/unit
GOLDEN=$ROOT/tests/golden

clean_environment() {
	local name
	# The countdown of bats is a job of this shell: a test's `wait` is for its own.
	disown -a
	for name in $(compgen -e); do
		case $name in
		AG2_* | *_API_KEY | *_AUTH_TOKEN | REDISCLI_AUTH | *_proxy | *_PROXY | XDG_* | CURL_* | SSL_CERT_*) unset "$name" ;;
		esac
	done
	unset LS_COLORS NO_COLOR EDITOR VISUAL PAGER LANGUAGE
	export LC_ALL=C.UTF-8 TZ=UTC TERM=dumb
	TMP=$BATS_TEST_TMPDIR
	export HOME=$TMP/home XDG_STATE_HOME=$TMP/state XDG_CONFIG_HOME=$TMP/config TMPDIR=$TMP
	export PATH=$BIN:$PATH
	mkdir -p "$HOME"
	cd "$TMP" || return 1
}

# A file with a setup of its own calls clean_environment first.
setup() {
	clean_environment
}

# The assertions of which bats itself has none: they say what was got.
fail() {
	printf '%s\n' "$@" >&2
	return 1
}

# status_is N: of the last `run`.
status_is() {
	[ "$status" -eq "$1" ] || fail "status $status instead of $1; output:" "$output"
}

output_is() {
	[ "$output" = "$1" ] || fail "got:" "$output" "want:" "$1"
}

# has TEXT [IN]: IN (default: the last output) contains TEXT.
has() {
	case ${2-$output} in
	*"$1"*) ;;
	*) fail "'$1' is not in:" "${2-$output}" ;;
	esac
}

hasnt() {
	case ${2-$output} in
	*"$1"*) fail "'$1' is in:" "${2-$output}" ;;
	esac
}

# same WANT GOT: two files with the same bytes.
same() {
	cmp -s -- "$1" "$2" || {
		diff -u -- "$1" "$2" | head -n 40 >&2
		fail "$1 and $2 differ"
	}
}

# wait_for SECONDS CMD...: until CMD succeeds.
wait_for() {
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$until" ] || { fail "waited too long for: $*"; return; }
		sleep 0.02
	done
}

# Root reads and writes everywhere, unless it lays these capabilities down.
without_root() {
	[ "$(id -u)" -ne 0 ] || set -- setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all "$@"
	"$@"
}

# Behind it a test may use script(1), which needs a pseudo-terminal: not every chroot has them.
need_terminal() {
	script -qec true /dev/null </dev/null >/dev/null 2>&1 || skip "no terminal can be had here"
}

# on_terminal COLUMNS COMMAND: runs it under a terminal of that width; \r of the terminal are taken off.
on_terminal() {
	script -qec "stty cols $1; $2" /dev/null </dev/null | tr -d '\r'
}
