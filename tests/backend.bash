# The kinds of store that tests are run on: disk, disk-full (?sync=full), sqlite, sqlite-ag2 (?layout=ag2), redis, cluster.
# `load redis`, then `load backend`.
#
# The tests of a file that loads this are run on one of them, and have a store of that kind in AG2_STORE.
# AG2_TEST_STORE says which, else the end of the file's name (x-redis.bats is a link to x.bats), else it is disk. A file whose
# tests go through them all sets kinds=$everywhere and says `everywhere FUNCTION...`, which takes those of AG2_TEST_STORE, if it is
# set. Servers are started once for a file; each test, and each call of everywhere, has a prefix of its own there.

backends="disk sqlite sqlite-ag2 redis cluster"
backend=${AG2_TEST_STORE:-$(basename "$BATS_TEST_FILENAME" .bats | sed -n 's/.*-\(disk-full\|sqlite-ag2\|sqlite\|redis\|cluster\)$/\1/p')}
backend=${backend:-disk}
everywhere=${AG2_TEST_STORE:-$backends}
kinds=$backend

# shellcheck disable=SC2086 # several
setup_file() {
	backend_servers $kinds
}

teardown_file() {
	backend_servers_end
}

setup() {
	clean_environment
	[ "$kinds" != "$backend" ] || backend_use "$backend"
}

# backend_servers KIND...: starts what these need; where there is no redis-server, none.
backend_servers() {
	local TMP=$BATS_FILE_TMPDIR kind
	command -v redis-server >/dev/null || return 0
	for kind in "$@"; do
		case $kind in
		redis)
			redis_start
			export backend_socket=$socket
			;;
		cluster)
			cluster_start
			export backend_port=${ports[0]}
			;;
		esac
	done
}

backend_servers_end() {
	local TMP=$BATS_FILE_TMPDIR
	redis_stop
	cluster_stop
}

# backend_use KIND [NAME]: a new store of that kind in AG2_STORE, for AG2's commands too where it is a server's.
backend_use() {
	local name=${2:-store}
	case $1 in
	redis | cluster) command -v redis-server >/dev/null || skip "no redis-server" ;;
	esac
	case $1 in
	disk) AG2_STORE=disk:$TMP/$name ;;
	disk-full) AG2_STORE="disk:$TMP/$name?sync=full" ;;
	sqlite) AG2_STORE=sqlite:$TMP/$name.db ;;
	sqlite-ag2) AG2_STORE="sqlite:$TMP/$name.db?layout=ag2" ;;
	redis)
		socket=$backend_socket
		ag2_key=t$BATS_TEST_NUMBER-$name
		AG2_STORE="redis+unix:$socket?prefix=$ag2_key"
		;;
	cluster)
		unset socket
		ag2_key={t$BATS_TEST_NUMBER-$name}
		AG2_STORE="redis://127.0.0.1:$backend_port/0?prefix=$ag2_key"
		;;
	*) fail "AG2_TEST_STORE: there are $backends disk-full, not '$1'" ;;
	esac
	export AG2_STORE
}

# everywhere FUNCTION [ARG...]: calls it on a new store of each kind, with its name in `kind`.
everywhere() {
	local kind
	for kind in $everywhere; do
		case $kind in
		redis | cluster) command -v redis-server >/dev/null || continue ;;
		esac
		backend_use "$kind" "${1}-$kind"
		echo "# on $kind"
		"$@"
	done
}
