# Loaded after helper and redis by the tests that kill: a store ($AG2_STORE, s or s.db here, or redis_start's) that can be put
# back to how it was.

crash_setup() {
	clean_environment
	"$TOOLS/killat" 1 true || [ $? -ne 77 ] || skip "no ptrace here"
}

# copy_keys FROM TO: databases of the server.
copy_keys() {
	rc -n "$2" FLUSHDB >/dev/null
	rc -n "$1" EVAL "for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', k, k, 'DB', ARGV[1]) end" 0 "$2" >/dev/null
}

keep_store() {
	case $AG2_STORE in
	disk:*) rm -rf start && cp -a s start ;;
	sqlite:*) cp s.db start.db ;;
	redis*) copy_keys 0 1 ;;
	esac
}

fresh_store() {
	rm -rf s s.db*
	case $AG2_STORE in
	disk:*) cp -a start s ;;
	sqlite:*) cp start.db s.db ;;
	redis*) copy_keys 1 0 ;;
	esac
}
