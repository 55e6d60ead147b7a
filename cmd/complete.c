#include "complete.h"
#include "help.h"

#include "base/alloc.h"
#include "config.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the scripts ---- */

/* PROGRAM and NAME, which has no hyphen, are replaced. */
static const char bash_script[] =
	"# bash completion of PROGRAM\n"
	"_NAME()\n"
	"{\n"
	"	local line=${COMP_LINE:0:COMP_POINT} cur before i\n"
	"	local -a words\n"
	"	read -ra words <<<\"$line\"\n"
	"	[[ $line == *[[:blank:]] ]] && words+=('')\n"
	"	cur=${words[${#words[@]}-1]}\n"
	"	before=${cur%\"${cur##*[=:]}\"}	# readline has a word of its own behind these\n"
	"	mapfile -t COMPREPLY < <(\"${words[0]}\" --complete \"${words[@]:1}\" 2>/dev/null)\n"
	"	if [[ ${COMPREPLY[0]-} == :files ]]; then\n"
	"		COMPREPLY=()\n"
	"		compopt -o default\n"
	"		return\n"
	"	fi\n"
	"	for i in \"${!COMPREPLY[@]}\"; do\n"
	"		line=${COMPREPLY[i]%%$'\\t'*}\n"
	"		line=${line#\"$before\"}\n"
	"		if [[ -n $line ]]; then printf -v 'COMPREPLY[i]' %q \"$line\"; else COMPREPLY[i]=; fi\n"
	"	done\n"
	"	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=:,] ]] && compopt -o nospace\n"
	"	return 0\n"
	"}\n"
	"complete -F _NAME PROGRAM\n";

static const char zsh_script[] =
	"#compdef PROGRAM\n"
	"_NAME() {\n"
	"	local -a lines open closed\n"
	"	local line\n"
	"	lines=(\"${(@f)$(\"${words[1]}\" --complete \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\")\n"
	"	if [[ ${lines[1]} == :files ]]; then\n"
	"		_files\n"
	"		return\n"
	"	fi\n"
	"	for line in \"${lines[@]}\"; do\n"
	"		line=${line%%$'\\t'*}\n"
	"		[[ -z $line ]] && continue\n"
	"		if [[ $line == *[/=:,] ]]; then open+=(\"$line\"); else closed+=(\"$line\"); fi\n"
	"	done\n"
	"	compadd -S '' -a open\n"
	"	compadd -a closed\n"
	"}\n"
	"if [[ ${funcstack[1]-} == _PROGRAM ]]; then _NAME; else compdef _NAME PROGRAM; fi\n";

static const char fish_script[] =
	"# fish completion of PROGRAM\n"
	"function __NAME_complete\n"
	"	set -l words (commandline -opc)\n"
	"	set -l lines ($words[1] --complete $words[2..] (commandline -ct) 2>/dev/null)\n"
	"	if test \"$lines[1]\" = :files\n"
	"		__fish_complete_path (commandline -ct)\n"
	"	else\n"
	"		printf '%s\\n' $lines\n"
	"	end\n"
	"end\n"
	"complete -c PROGRAM -f -a '(__NAME_complete)'\n";

static void
print_script(const char *script, const char *program)
{
	const char *p;

	while (*script != '\0') {
		if (strncmp(script, "PROGRAM", 7) == 0) {
			out_puts(program);
			script += 7;
		} else if (strncmp(script, "NAME", 4) == 0) {
			for (p = program; *p != '\0'; p++)
				out_write(*p == '-' ? "_" : p, 1);
			script += 4;
		} else {
			out_write(script++, 1);
		}
	}
}

static noreturn void
print_completion(const struct opts *o, const char *shell)
{
	static const struct { const char *shell, *script; } scripts[] = { { "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script } };
	size_t i;

	for (i = 0; i < sizeof(scripts) / sizeof(*scripts); i++)
		if (strcmp(scripts[i].shell, shell) == 0) {
			print_script(scripts[i].script, o->program);
			out_close();
			exit(0);
		}
	cli_usage(o, "--completion is for bash, zsh or fish, not '%s'", shell);
}

/* ---- what is offered ---- */

/* A line end or a tab would be taken for one of ours. */
void
complete_offer(const char *word, const char *text, const char *what)
{
	if (strncmp(text, word, strlen(word)) != 0 || strpbrk(text, "\n\t") != NULL)
		return;
	out_puts(text);
	if (what != NULL) {
		out_puts("\t");
		out_puts(what);
	}
	out_puts("\n");
}

struct offer {
	const char *word, *before, *dir;
};

static int
offer_stream(void *arg, const char *id, const struct store_stat *st)
{
	const struct offer *f = arg;
	char *text = xasprintf("%s%s", f->before, id);

	complete_offer(f->word, text, NULL);
	free(text);
	return 0;
}

static int
offer_child(void *arg, const char *name, bool dir, const struct store_stat *st)
{
	const struct offer *f = arg;
	char *text = xasprintf("%s%s%s%s", f->before, f->dir, name, dir ? "/" : "");

	complete_offer(f->word, text, NULL);
	free(text);
	return 0;
}

/* NULL when there is none: then nothing of it is offered. */
static struct store *
open_for(const struct complete_state *st)
{
	struct store_options options = { .mode = STORE_READ, .timeout_ms = 500 };
	struct agent agent = { 0 };
	struct buf url = BUF_INIT;
	struct store *s = NULL;

	if (st->url == NULL && st->config != NULL && agent_read(&agent, st->config, NULL) < 0)
		return NULL;
	if (cli_store_url(&url, st->url, agent.store, NULL, NULL) == 0 && store_open(&s, url.data, &options, NULL) < 0)
		s = NULL;
	buf_release(&url);
	agent_release(&agent);
	return s;
}

static void
offer_streams(const char *word, const char *before, const struct complete_state *st)
{
	struct offer f = { word, before, NULL };
	struct store *s = open_for(st);

	offer_stream(&f, "@last", NULL);
	offer_stream(&f, "@new", NULL);
	if (s != NULL)
		stream_list(s, offer_stream, &f, NULL);
	store_close(s);
}

/* What is in the directory that the word is in. */
static void
offer_paths(const char *word, const char *before, const struct complete_state *st)
{
	const char *path = word + strlen(before), *slash = strrchr(path, '/');
	char *dir = xmemdup0(path, slash ? (size_t)(slash + 1 - path) : 0);
	struct offer f = { word, before, dir };
	struct store *s = open_for(st);

	if (s != NULL)
		store_list(s, dir[0] != '\0' ? dir : "/", strncmp(path, "/.ag2", 5) == 0 ? STORE_LIST_ALL : 0, offer_child, &f, NULL);
	store_close(s);
	free(dir);
}

static void
offer_alternatives(const char *kind, const char *word, const char *before)
{
	char *list = xstrdup(kind), *one, *rest = list, *text;

	while ((one = strsep(&rest, "|")) != NULL) {
		text = xasprintf("%s%s", before, one);
		complete_offer(word, text, NULL);
		free(text);
	}
	free(list);
}

void
complete_kind(const char *kind, const char *word, const char *before, const struct complete_state *st)
{
	if (strcmp(kind, "S") == 0)
		offer_streams(word, before, st);
	else if (strcmp(kind, "PATH") == 0)
		offer_paths(word, before, st);
	else if (strstr(kind, "FILE") != NULL || strcmp(kind, "URL") == 0)
		out_puts(":files\n");
	else if (strcmp(kind, "T") == 0)
		offer_alternatives("today|yesterday|7d|30d", word, before);
	else if (strpbrk(kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL && kind[0] != '\0')
		offer_alternatives(kind, word, before);
}

/* ---- options ---- */

/* The option that `--name`, `--name=…` or the last letter of `-xyz` is; *value behind the '=' or in `-xvalue`, else NULL. */
static const struct opt *
option_of(const struct opt *const tables[2], const char *word, const char **value)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word), i, t;
	const struct opt *p = NULL;

	*value = NULL;
	if (word[0] == '-' && word[1] == '-') {
		for (t = 0; t < 2; t++)
			for (p = tables[t]; p != NULL && !opt_is_end(p); p++)
				if (p->name != NULL && strlen(p->name) == len - 2 && strncmp(p->name, word + 2, len - 2) == 0) {
					*value = equals ? equals + 1 : NULL;
					return p;
				}
		return NULL;
	}
	for (i = 1; word[i] != '\0'; i++)
		for (t = 0; t < 2; t++)
			for (p = tables[t]; p != NULL && !opt_is_end(p); p++)
				if (p->letter == word[i] && (opt_takes_value(p) || word[i + 1] == '\0')) {
					*value = word[i + 1] != '\0' ? word + i + 1 : NULL;
					return p;
				}
	return NULL;
}

static void
offer_options(const struct opt *p, const char *word)
{
	char text[80];

	for (; p != NULL && !opt_is_end(p); p++) {
		if (p->name != NULL)
			snprintf(text, sizeof(text), "--%s%s", p->name, opt_takes_value(p) ? "=" : "");
		else
			snprintf(text, sizeof(text), "-%c", p->letter);
		complete_offer(word, text, p->help);
	}
}

/* One word before the last; true when it wants the next one. */
static bool
take_word(const struct opt *const tables[2], const char *word, const char *next, struct complete_state *st)
{
	const char *value;
	const struct opt *p = option_of(tables, word, &value);

	if (p == NULL || !opt_takes_value(p))
		return false;
	if (p->letter == 's')
		st->url = value ? value : next;
	if (p->letter == 'c')
		st->config = value ? value : next;
	return value == NULL;
}

bool
complete_option(const struct opt *table, const struct opt *common, char **words, int n, bool stop, struct complete_state *st)
{
	const struct opt *const tables[2] = { table, common }, *p, *wants = NULL;
	const char *word = words[n - 1], *value;
	bool ended = false;
	int i;

	st->operands = 0;
	st->first = n - 1;
	for (i = 0; i < n - 1; i++) {
		wants = NULL;
		if (!ended && strcmp(words[i], "--") == 0) {
			ended = true;
		} else if (!ended && words[i][0] == '-' && words[i][1] != '\0') {
			if (take_word(tables, words[i], words[i + 1], st)) {
				wants = option_of(tables, words[i], &value);
				i++;
			}
		} else if (st->operands++ == 0) {
			st->first = i;
			if (stop)
				return false;
		}
	}
	if (wants != NULL && i == n) {
		complete_kind(wants->arg ? wants->arg : "", word, "", st);
		return true;
	}
	if (ended || word[0] != '-')
		return false;
	p = option_of(tables, word, &value);
	if (p != NULL && value != NULL && word[1] == '-') {
		char *before = xmemdup0(word, (size_t)(value - word));

		complete_kind(p->arg ? p->arg : "", word, before, st);
		free(before);
		return true;
	}
	offer_options(table, word);
	offer_options(common ? common : program_options, word);
	offer_options(opts_standard, word);
	return true;
}

static noreturn void
complete(const struct opts *o, char **words, int n)
{
	struct complete_state st = { 0 };
	static char empty[] = "", *none[] = { empty };

	if (n == 0) {
		words = none;
		n = 1;
	}
	if (o->complete != NULL)
		o->complete(n, words);
	else
		complete_option(o->table, o->common, words, n, false, &st);
	out_close();
	exit(0);
}

void
complete_maybe(const struct opts *o, int argc, char **argv)
{
	if (argc < 2)
		return;
	if (strcmp(argv[1], "--complete") == 0)
		complete(o, argv + 2, argc - 2);
	if (strncmp(argv[1], "--completion=", 13) == 0)
		print_completion(o, argv[1] + 13);
	if (strcmp(argv[1], "--completion") == 0 && argc == 3)
		print_completion(o, argv[2]);
}
