# Completion: what the programs offer, and that bash uses it.
bats_require_minimum_version 1.5.0
load helper

# offers WORD...: what the last word can become, without the explanations, in one line.
offers() {
	"$@" | cut -f 1 | tr '\n' ' '
}

fill() {
	export AG2_STORE=disk:$TMP/store
	ag2-store log user stream-one hi
	ag2-store log user stream-two hi
	echo x | ag2-store write /memory/working.md
	echo x | ag2-store write '/memory/with blank'
	echo x | ag2-store write "/memory/$(printf 'new\nline')"
}

# in_bash LINE: what bash would put for the end of the line.
in_bash() {
	bash -c '
		set -f
		eval "$("${1%% *}" --completion=bash)"
		compopt() { :; }
		COMP_LINE=$1 COMP_POINT=${#1}
		f=$(complete -p "${1%% *}" | sed "s/.*-F \([^ ]*\) .*/\1/")
		$f
		printf "%s\n" "${COMPREPLY[@]}"' - "$1"
}

@test "every command of ag2-store is offered, and each of its options" {
	ag2-store --help | sed -n '/^Commands/,/^$/s/^  \(log [a-z]*\|[a-z][a-z]*\)  .*/\1/p' >commands
	[ "$(wc -l <commands)" -ge 25 ]
	ag2-store --complete '' | cut -f 1 >offered
	ag2-store --complete log '' | cut -f 1 | sed 's/^/log /' >>offered
	while read -r c; do
		grep -qx -- "$c" offered || fail "'$c' is not offered"
		ag2-store --complete $c -- | cut -f 1 >options
		ag2-store --complete $c - | cut -f 1 >options
		for o in $(ag2-store $c --help | sed -n '/^Options/,/^$/s/^  .*\(--[a-z-]*\).*  .*/\1/p'); do
			grep -q -- "^$o=\?\$" options || fail "$c: $o is not offered"
		done
	done <commands
}

@test "every option of every program is offered, and what takes a value ends in =" {
	for program in "$BIN"/ag2-*; do
		"$program" --complete - | cut -f 1 >options
		for o in $("$program" --help | grep -oE '^  .{0,4}--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'); do
			grep -q -- "^$o=\?\$" options || fail "${program##*/}: $o is not offered"
		done
	done
	[ "$(offers ag2-store --complete cat --r)" = "--range= " ]
	[ "$(offers ag2-store --complete ls --l)" = "--long " ]
	[ "$(offers ag2-store --complete cat -- --r)" = "" ]
}

@test "streams, paths, values" {
	fill
	[ "$(offers ag2-store --complete log show '')" = "@last @new stream-one stream-two " ]
	[ "$(offers ag2-store --complete log show --full stream-o)" = "stream-one " ]
	[ "$(offers ag2-store --complete log show stream-one '')" = "" ]
	[ "$(offers ag2-store --complete log rm stream-one stream-t)" = "stream-two " ]
	[ "$(offers ag2-store --complete log user stream-one x)" = "" ]
	[ "$(offers ag2-store --complete log tail -n 3 s)" = "stream-one stream-two " ]
	[ "$(offers ag2-store --complete log grep word stream-t)" = "stream-two " ]
	[ "$(offers ag2-store --complete log grep --since=y)" = "--since=yesterday " ]
	[ "$(offers ag2-assemble --complete --stream stream-t)" = "stream-two " ]
	[ "$(offers ag2-assemble --complete --stream=stream-t)" = "--stream=stream-two " ]
	[ "$(offers ag2-ask --complete --layout=)" = "--layout=ag2 --layout=cache " ]
	[ "$(offers ag2-store --complete cat /)" = "/log/ /memory/ " ]
	[ "$(offers ag2-store --complete cat mem)" = "memory/ " ]
	[ "$(offers ag2-store --complete cat x /memory/w)" = "/memory/with blank /memory/working.md " ]
	[ "$(offers ag2-store --complete write /x '')" = ":files " ]
	[ "$(offers ag2-store --complete -c '')" = ":files " ]
	mkdir other
	echo x | ag2-store -s disk:other write /elsewhere
	[ "$(offers ag2-store --complete -s disk:other cat /)" = "/elsewhere " ]
	[ "$(offers ag2-store --complete cat -s disk:other /)" = "/elsewhere " ]
	run -0 ag2-store --complete -s disk:nowhere cat /
	output_is ""
	[ "$(offers ag2-store --complete lo)" = "lock log " ]
	[ "$(offers ag2-store --complete help tr)" = "tree " ]
	[ "$(offers ag2-store --complete no-such x)" = "" ]
	[ -n "$(ag2-store --complete)" ]
}

@test "policies and their keys, strategies" {
	[ "$(offers ag2-assemble --complete sl)" = "sliding-window: " ]
	[ "$(offers ag2-assemble --complete working-memory sliding-window:s)" = "sliding-window:step= " ]
	[ "$(offers ag2-assemble --complete episodic-memory:max_episodes=3,t)" = "episodic-memory:max_episodes=3,transparent= " ]
	has "working-memory" "$(offers ag2-aggregate --complete '')"
	has "tail-window:" "$(offers ag2-compact --complete '')"
}

@test "bash: words with = and : are completed behind them, odd names are quoted" {
	fill
	[ "$(in_bash 'ag2-store log show stream-t')" = stream-two ]
	[ "$(in_bash 'ag2-store cat /memory/wi')" = '/memory/with\ blank' ]
	[ "$(in_bash 'ag2-assemble sliding-window:s')" = step= ]
	[ "$(in_bash 'ag2-ask --layout=c')" = cache ]
	[ "$(in_bash 'ag2-store ')" = "$(ag2-store --complete '' | cut -f 1)" ]
}

@test "each shell takes its script" {
	for program in "$BIN"/ag2-*; do
		for shell in bash zsh fish; do
			"$program" --completion=$shell >script
			[ -s script ]
			! grep -qE 'PROGRAM|NAME' script
			grep -q "${program##*/}" script
			command -v $shell >/dev/null || continue
			$shell -n script
		done
	done
	run -64 ag2-store --completion=tcsh
}

@test "make install puts completion where the shells look for it" {
	make -s -C "$ROOT" BUILD="${BIN%/bin}" DESTDIR="$TMP/root" PREFIX=/usr install
	for f in bash-completion/completions/ag2-store zsh/site-functions/_ag2-ask fish/vendor_completions.d/ag2-compact.fish; do
		[ -s "root/usr/share/$f" ]
	done
}

@test "zsh: the first completion in a shell, which loads the script, completes too" {
	command -v zsh >/dev/null || skip "no zsh"
	mkdir functions
	ag2-store --completion=zsh >functions/_ag2-store
	# the file is run with its own name, which has a hyphen, on top of the function stack
	run -0 zsh -fc 'fpath=($PWD/functions); autoload -Uz _ag2-store; compadd() { print -- "${@[-1]}"; }; words=(ag2-store tre) CURRENT=2; _ag2-store'
	has "closed"
}

# What is typed in the tests of the shells themselves, and what a tab makes of it: a line or more for each program.
typed() {
	cat <<-'END'
		ag2-store log show stream-o	ag2-store log show stream-one
		ag2-store cat /memory/wi	ag2-store cat /memory/with\ blank
		ag2-assemble sliding-window:st	ag2-assemble sliding-window:step=
		ag2-assemble sliding-window:step=	ag2-assemble sliding-window:step=
		ag2-ask --layout=c	ag2-ask --layout=cache
		ag2-ask --stream=stream-t	ag2-ask --stream=stream-two
		ag2-aggregate conv	ag2-aggregate conversation-summary
		ag2-compact --stream stream-t	ag2-compact --stream stream-two
	END
}

# in_terminal SHELL SETUP: types the lines of `typed`, each with a tab, and a ^G which SETUP has bound to printing `got:LINE` and an
# empty line.
in_terminal() {
	need_terminal
	fill
	mkdir scripts
	for program in "$BIN"/ag2-*; do "$program" --completion="${1%% *}" >"scripts/_${program##*/}"; done
	printf '%s\n' "$2" >setup
	typed >table
	{
		echo ". ./setup"
		while IFS=$'\t' read -r line want; do printf '%s\t\007' "$line"; done <table
		echo exit
	} | TERM=dumb timeout 60 script -qec "$1" /dev/null >screen 2>&1 || true
	grep -ao 'got:.*' screen | sed -e 's/^got://' -e 's/[ \r]*$//' >got
	cut -f 2 table >want
	same want got
}

@test "bash itself completes for every program" {
	in_terminal "bash --norc --noprofile -i" '
		for s in scripts/*; do . $s; done
		got() { echo "got:$READLINE_LINE"; READLINE_LINE= READLINE_POINT=0; }
		bind -x '\''"\C-g": got'\'
}

@test "zsh itself completes for every program" {
	command -v zsh >/dev/null || skip "no zsh"
	in_terminal "zsh -f -i" '
		fpath=($PWD/scripts $fpath)
		autoload -Uz compinit
		compinit -u -D
		got() { print; print -r -- "got:$BUFFER"; BUFFER=; }
		zle -N got
		bindkey -e
		bindkey "^G" got'
}

@test "fish itself completes for every program" {
	command -v fish >/dev/null || skip "no fish"
	fill
	for program in "$BIN"/ag2-*; do "$program" --completion=fish; done >all.fish
	typed | while IFS=$'\t' read -r line want; do
		got=$(fish --no-config -c 'source all.fish; complete -C $argv[1]' "$line" | cut -f 1)
		[ "${line% *} ${got// /\\ }" = "$want" ] || fail "$line: $got"
	done
}
