# The examples of the pages in sections 5 and 7 do what they say.
bats_require_minimum_version 1.5.0
load helper

# blocks KIND PAGE: the literal displays behind a comment of that kind, one after the other, with a line `%%` before each.
blocks() {
	awk -v kind=".\\\\\" $1" '
		$0 == kind { on = 1; next }
		on && /^\.Bd/ { print "%%"; body = 1; next }
		/^\.Ed/ { on = body = 0; next }
		body { gsub(/\\e/, "\\"); print }
		' "$ROOT/man/$2"
}

@test "ag2(7): the tour and its recipes run in order" {
	blocks run ag2.7 | sed 's/^%%$/true/' >tour.sh
	[ "$(grep -c '^true$' tour.sh)" -ge 9 ]
	run -0 bash -e tour.sh
	has "I was shown 2 lines."
	has "turn 1"
	has "READ NEXT" "$(cat tour.sh)"
	# every display has its kind, so that none is left untried
	[ "$(grep -c '^\.Bd' "$ROOT/man/ag2.7")" -eq "$(grep -cE '^\.\\" (run|cron|make)$' "$ROOT/man/ag2.7")" ]
}

@test "ag2(7): the lines for cron run, silently" {
	ag2-store -s sqlite:store.db log user s hello
	blocks cron ag2.7 | grep -v '^%%' >crontab
	[ "$(wc -l <crontab)" -eq 2 ]
	while read -r _ _ _ _ _ command; do
		run -0 sh -c "$command"
		output_is ""
	done <crontab
}

@test "ag2(7): the Makefile makes its file" {
	blocks make ag2.7 | grep -v '^%%' >Makefile
	ag2-store -s disk:s log user s hello
	ag2-store -s disk:s log cat s >session.jsonl
	run -0 make summary.md
	[ "$(cat summary.md)" = "A short summary." ]
}

@test "ag2-events(5): its lines are events" {
	[ "$(grep -c '^\.Bd -literal' "$ROOT/man/ag2-events.5")" -eq "$(grep -c '^\.\\" events$' "$ROOT/man/ag2-events.5")" ]
	blocks events ag2-events.5 | grep -v '^%%' >lines
	[ "$(wc -l <lines)" -eq 4 ]
	run -0 --separate-stderr ag2-store -s disk:s log append s <lines
	[ -z "$stderr" ]
	run -0 ag2-store -s disk:s log show s
	has "Hello"
	has "Good evening."
}

# classes FLAGS: of the table of event types those whose flags match the expression.
classes() {
	sed -n 's/^\tTYPE("[^"]*", "\([A-Za-z]*\)", \(.*\)),$/\1 \2/p' "$ROOT/lib/event/type.c" | sed -n "s/ $1\$//p" | sort
}

# listed N: the classes in the Nth list of the page.
listed() {
	awk -v n="$1" '/^\.Bd -ragged/ { list++ } /^\.Ed/ { inside = 0 } inside && list == n; /^\.Bd -ragged/ { inside = 1 }' \
		"$ROOT/man/ag2-events.5" | sed 's/^\.Vt //' | tr -d ',;.' | tr -s ' ' '\n' | sort
}

@test "ag2-events(5): its lists are the table of event types" {
	[ "$(classes '.*' | wc -l)" -ge 60 ]
	diff -u <(classes '\(KEPT\|BUILTIN\|RESULT\|ERROR_RESULT\).*') <({ listed 1; listed 2; } | sort)
	diff -u <(classes '\(PLAIN\|PART\).*') <(listed 3)
	diff -u <(classes TRANSIENT) <(listed 4)
	diff -u <(classes EV_USAGE) <(echo UsageEvent)
}

@test "ag2-agent(5): its files are accepted, and it names every key of the reader" {
	[ "$(grep -c '^\.Bd -literal' "$ROOT/man/ag2-agent.5")" -eq "$(grep -c '^\.\\" agent$' "$ROOT/man/ag2-agent.5")" ]
	blocks agent ag2-agent.5 | csplit -s -f agent -b %d.yaml - '/^%%$/' '{*}'
	rm agent0.yaml
	[ -s agent2.yaml ]
	printf '#!/bin/sh\n' >weather
	chmod +x weather
	for f in agent*.yaml; do
		sed -i '/^%%$/d' $f
		chmod go-w $f
		run ag2-ask -c $f --check
		[ "$status" -le 1 ] || fail "$f: $output"
	done
	mandoc -Tascii "$ROOT/man/ag2-agent.5" | sed 's/.\x08//g' >page
	[ "$(sed -n 's/^	\t*{ "\([a-z_]*\)", \(set\|keep\)_.*/\1/p' "$ROOT/lib/config.c" | sort -u | wc -l)" -ge 25 ]
	for key in $(sed -n 's/^	\t*{ "\([a-z_]*\)", \(set\|keep\)_.*/\1/p' "$ROOT/lib/config.c" | sort -u); do
		grep -qw "$key" page || fail "the page does not have $key"
	done
}

@test "ag2-store(1) has each option of each command, and no other" {
	mandoc -Tascii "$ROOT/man/ag2-store.1" | sed 's/.\x08//g' >page
	ag2-store --help | sed -n '/^Commands/,/^$/s/^  \(log [a-z]*\|[a-z]*\)  .*/\1/p' >commands
	echo '--completion' >options
	while read -r c; do
		ag2-store $c --help | sed -n '/^Options/,/^$/p' | grep -oE '^  .{0,4}--[a-z-]+' | grep -oE -- '--[a-z-]+' >some
		while read -r o; do
			grep -qE -- "$o([^a-z-]|\$)" page || fail "$c: the page does not have $o"
		done <some
		cat some >>options
	done <commands
	sort -u options >known
	[ "$(wc -l <known)" -ge 30 ]
	grep -oE -- '(^|[ ,|[])--[a-z][a-z-]*' page | grep -oE -- '--[a-z-]+' | sort -u >named
	for o in $(comm -13 known named); do
		case $o in
		--events | --stream | --idle) ;;	# of other programs, in examples
		*) fail "the page has $o, which no command takes" ;;
		esac
	done
}
