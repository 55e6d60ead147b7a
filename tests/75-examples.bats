#!/usr/bin/env bats
# scripts/examples, as one would use them.

load helper
load scripted

setup() {
	clean_environment
	examples=$ROOT/scripts/examples
}

# An agent file for the examples that name $HOME/journal.yaml.
journal() {
	ag2-store -s "disk:$HOME/state" log user s "I run on Tuesdays"
	touch -d '1 hour ago' "$HOME/state/log/s.jsonl"
	printf 'model: "exec:cat >/dev/null; echo runs on Tuesdays"\nknowledge: {store: "disk:%s", aggregate: working_memory, aggregate_trigger: {on_end: true}}\n' \
		"$HOME/state" >"$HOME/journal.yaml"
	chmod 600 "$HOME/journal.yaml"
}

learnt() {
	[ "$(ag2-store -s "disk:$HOME/state" cat /memory/working.md)" = "runs on Tuesdays" ]
}

@test "the line of the crontab aggregates, and says nothing" {
	journal
	sed -n 's/^[0-9*/]* [0-9*]* [0-9*]* [0-9*]* [0-9*]* //p' "$examples/crontab" >command
	[ "$(wc -l <command)" -eq 1 ]
	! grep -q % command	# a newline, for cron
	run -0 sh ./command
	output_is ""
	learnt
}

@test "the command of the systemd unit does the same" {
	journal
	sed -n 's/^ExecStart=//p' "$examples/ag2-aggregate.service" | sed -e "s|/usr/local/bin|$BIN|" -e "s|%h|$HOME|g" >command
	run -0 sh ./command
	output_is ""
	learnt
	if command -v systemd-analyze >/dev/null; then
		sed "s|/usr/local/bin|$BIN|" "$examples/ag2-aggregate.service" >ag2-aggregate.service
		cp "$examples/ag2-aggregate.timer" .
		run systemd-analyze --user verify ./ag2-aggregate.service ./ag2-aggregate.timer
		hasnt "ag2-aggregate.service:" || fail "$output"
	fi
}

@test "the Makefile: summaries from logs, answers from questions and summaries, once each, and again from a cassette" {
	mkdir logs questions
	export AG2_STORE=disk:$TMP/s
	for s in a b c; do
		ag2-store log user $s "this is $s"
		ag2-store log cat $s >logs/$s.jsonl
	done
	echo "what is b?" >questions/b.txt
	echo "what is c?" >questions/c.txt
	cat >model <<-'END'
		#!/bin/sh
		echo x >>asked
		jq -r 'if .type == "Prompt" then .data.content else .data.parts[0].content end' | grep -e 'this is' -e 'what is'
	END
	chmod +x model
	make -s -j4 -f "$examples/summaries.mk" MODEL=exec:./model
	[ "$(wc -l <asked)" -eq 5 ]
	has "this is b" "$(cat summaries/b.md)"
	has "this is a" "$(cat answers/c.md)"
	has "what is c?" "$(cat answers/c.md)"
	make -s -f "$examples/summaries.mk" MODEL=exec:./model
	[ "$(wc -l <asked)" -eq 5 ]
	touch -d '1 hour' logs/b.jsonl
	AG2_RECORD=$TMP/tape make -s -f "$examples/summaries.mk" MODEL=exec:./model
	[ "$(wc -l <asked)" -eq 8 ]
	mkdir first
	mv summaries answers first
	mkdir summaries
	cp -p first/summaries/[ac].md summaries
	rm model
	AG2_REPLAY=$TMP/tape make -s -j4 -f "$examples/summaries.mk" MODEL=exec:./model
	diff -r first/summaries summaries
	diff -r first/answers answers
}

@test "the document chat reads in parts, keeps one summary, and asks with it" {
	seq -f 'line %g of the book' 25 >book
	sed 's|^model: .*|model: "exec:./model"|' "$examples/document.yaml" >document.yaml
	chmod 600 document.yaml
	cat >model <<-'END'
		#!/bin/sh
		n=$(ls sent.* 2>/dev/null | wc -l)
		cat >"sent.$((n + 1))"
		case $(cat "sent.$((n + 1))") in
		*"Notes so far"*) echo "notes $((n + 1))" ;;
		*) echo "an answer" ;;
		esac
	END
	chmod +x model
	LINES=10 run -0 --separate-stderr "$examples/document-chat" book "What is line 3?"
	output_is "an answer"
	[ "$(ls sent.* | wc -l)" -eq 4 ]
	has "line 1 of the book" "$(cat sent.1)"
	has "notes 2" "$(cat sent.3)"
	hasnt "line 11 of" "$(cat sent.3)"
	has "notes 3" "$(cat sent.4)"
	[ "$(ag2-store -c document.yaml ls -1 /memory/conversations | wc -l)" -eq 1 ]
	[ "$(ls document-state/log/*.dropped-* | wc -l)" -eq 1 ]	# what was read goes out of the log
	LINES=10 run -0 --separate-stderr "$examples/document-chat" book "And line 4?"
	[ "$(ls sent.* | wc -l)" -eq 5 ]
	has "What is line 3?" "$(cat sent.5)"
}

@test "the document chat does not ask about a file that is not there" {
	sed 's|^model: .*|model: "exec:cat >/dev/null; echo notes"|' "$examples/document.yaml" >document.yaml
	chmod 600 document.yaml
	: >empty
	run -66 "$examples/document-chat" nowhere "What is it about?"
	run -66 "$examples/document-chat" empty "What is it about?"
	[ ! -e document-state ]
}

@test "own parts: a tool that rolls, an aggregate that writes down, a policy that shows it" {
	cp -r "$examples/own" .
	model_init
	sed "s|^model: .*|model: \"$MODEL\"|" "$examples/own.yaml" >own.yaml
	chmod 600 own.yaml
	answer_calls c1 dice '{"sides": 6, "count": 3}'
	answer_text "rolled"
	run -0 ag2-ask -c own.yaml --stream s --no-upkeep "Remember: I like tea"
	has "rolled"
	jq -r 'select(.type | endswith("ToolResultsEvent")) | .data.results[0].result.data.parts[0].content' own-state/log/s.jsonl >dice
	[ "$(grep -c '^[1-6]$' dice)" -eq 3 ] || fail "$(cat own-state/log/s.jsonl)"
	ag2-aggregate -c own.yaml --stream s
	[ "$(ag2-store -s disk:own-state cat /memory/facts.md | grep -c tea)" -eq 1 ]
	answer_text "tea"
	run -0 ag2-ask -c own.yaml --stream t --no-upkeep "What do I like?"
	has "I like tea" "$(cat "$MODEL_DIR/sent.3")"
	# the same run again: it writes nothing
	AG2_STORE=disk:$TMP/own-state AG2_RUN=$(ag2-store -s disk:own-state cat /memory/facts.md | sed -n 's/<!-- \(.*\) -->/\1/p') \
		own/facts <own-state/log/s.jsonl
	[ "$(ag2-store -s disk:own-state cat /memory/facts.md | grep -c tea)" -eq 1 ]
	echo '{"sides": 1}' | run -1 own/dice
}
